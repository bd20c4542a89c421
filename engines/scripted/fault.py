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


class FaultPlan:
    """Armed faults, and how many calls each has counted."""

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        self._armed: list[Fault] = []
        self._calls: list[int] = []
        for fault in faults:
            self.arm(fault)

    def arm(self, fault: Fault) -> None:
        """Let a fault count calls from now on."""
        self._armed.append(fault)
        self._calls.append(0)

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
        struck: OutriderError | None = None
        for place, fault in enumerate(self._armed):
            if (fault.where, fault.slot) != (where, slot):
                continue
            self._calls[place] += 1
            if fault.nth <= self._calls[place] < fault.nth + fault.times:
                struck = struck or fault.error
        return struck
