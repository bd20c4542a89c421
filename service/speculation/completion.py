"""Exact completions of submitted work, and waiting for them within a bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from service.errors import ZeroCompletionTimeout


class CompletionCancellation(Enum):
    """What happens to work that is still live at its deadline.

    NATIVE_CANCEL: the engine tears it down before the wait returns.
    QUARANTINE_UNTIL_COMPLETE: the work and every buffer and slot it borrows
    move to an owner that releases them only once its completion was seen.
    """

    NATIVE_CANCEL = "native-cancel"
    QUARANTINE_UNTIL_COMPLETE = "quarantine-until-complete"


@dataclass(frozen=True, slots=True)
class BoundedWait:
    """A positive timeout in seconds and the disposition applied when it passes."""

    timeout: float
    cancellation: CompletionCancellation

    def __post_init__(self) -> None:
        """Refuse a wait that has no time to wait."""
        if self.timeout <= 0.0:
            raise ZeroCompletionTimeout


@dataclass(frozen=True, slots=True)
class Completed:
    """The work ended, and its buffers are no longer in use."""


@dataclass(frozen=True, slots=True)
class DeadlineExceeded:
    """The work was live at its deadline; `cancellation` was really applied."""

    cancellation: CompletionCancellation


class Completion(Protocol):
    """The exact completion of one submission; it keeps its error and is single-shot."""

    def is_complete(self) -> bool:
        """Return whether the work has ended, without blocking; monotonic."""

    def wait(self) -> None:
        """Block for exactly this submission; raise the error it ended with."""

    def wait_bounded(self, policy: BoundedWait) -> Completed | DeadlineExceeded:
        """Wait at most `policy.timeout`, then apply its disposition; consumes the completion.

        Raises:
            EngineError: the work failed for good, or is already quarantined.
        """

    def on_complete(self, callback: Callable[[], None]) -> None:
        """Call back once, from any thread, when the work has ended (at once if it has)."""
