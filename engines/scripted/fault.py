"""Faults by declaration: which call of which operation fails, for whom, and how."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from service.errors import OutriderError


class Operation(Enum):
    """The calls that can be made to fail."""

    OPEN = "open"
    CLOSE = "close"
    CHECKPOINT = "checkpoint"
    RESTORE = "restore"
    PREFILL = "prefill"
    SUBMIT = "submit"
    COMPLETION = "completion"
    ROWS = "rows"
    COMMIT = "commit"
    PROPOSER_OPEN = "proposer_open"
    DRAFT = "draft"
    PROPOSER_COMMIT = "proposer_commit"


@dataclass(frozen=True, slots=True)
class Fault:
    """The nth matching call fails, and the `times - 1` after it; counting starts when armed.

    With a slot, only calls for it count, and where the operation has a result
    for each lane the error is that lane's alone. Without one, the call raises
    for all its lanes.
    """

    where: Operation
    error: OutriderError
    slot: int | None = None
    nth: int = 1
    times: int = 1


@dataclass(slots=True)
class _Armed:
    fault: Fault
    calls: int = 0

    def concerns(self, where: Operation, slot: int | None) -> bool:
        return (self.fault.where, self.fault.slot) == (where, slot)

    def count(self) -> bool:
        """Count one call; return whether the fault strikes it."""
        self.calls += 1
        return self.fault.nth <= self.calls < self.fault.nth + self.fault.times


class FaultPlan:
    """Armed faults, each with the calls that it has counted."""

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        self._armed: list[_Armed] = []
        for fault in faults:
            self.arm(fault)

    def arm(self, fault: Fault) -> None:
        """Let a fault count calls from now on."""
        self._armed.append(_Armed(fault))

    def disarm(self, slot: int) -> None:
        """Drop the faults of a slot, whose next lane is not to meet them."""
        self._armed = [armed for armed in self._armed if armed.fault.slot != slot]

    def first_error(self, where: Operation, *slots: int) -> OutriderError | None:
        """Count one call that concerns these slots; return the error it ends with."""
        errors = [self._count(where, slot) for slot in (None, *slots)]
        return next((error for error in errors if error is not None), None)

    def strike(self, where: Operation, *slots: int) -> None:
        """Count one call that concerns these slots, and raise the error it ends with."""
        error = self.first_error(where, *slots)
        if error is not None:
            raise error

    def strike_lane(self, where: Operation, slot: int) -> None:
        """Count one lane's part of a call, and raise the error that part ends with."""
        error = self._count(where, slot)
        if error is not None:
            raise error

    def _count(self, where: Operation, slot: int | None) -> OutriderError | None:
        concerned = [armed for armed in self._armed if armed.concerns(where, slot)]
        struck = [armed.fault.error for armed in concerned if armed.count()]
        return struck[0] if struck else None
