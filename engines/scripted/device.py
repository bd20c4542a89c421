"""A device that runs submitted work in its own time, and the exact completions of that work.

Work takes effect when its end has come and someone on the engine's thread
looks: whoever touches the device first lets it catch up, in order of the ends.
So a pass that outlived its deadline still writes, late, as real ones do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum

from engines.scripted.clock import Clock
from service.errors import CompletionDeadline, EngineError, OutriderError
from service.speculation.completion import (
    BoundedWait,
    Completed,
    CompletionCancellation,
    DeadlineExceeded,
)

HANG = math.inf


class WorkState(Enum):
    """Where a piece of work stands."""

    RUNNING = "running"
    QUARANTINED = "quarantined"
    ENDED = "ended"
    TORN_DOWN = "torn_down"


@dataclass(frozen=True, slots=True)
class Effects:
    """What work does when it ends, what follows any end, and what a wait then tells.

    `settle` also follows a native cancel, whose work never ran. A wait raises
    `error`, or else makes the results readable by `on_success`.
    """

    run: Callable[[], None]
    settle: Callable[[], None]
    on_success: Callable[[], None]
    error: OutriderError | None = None


class Device:
    """All unfinished work of one engine; ends are independent of the order of submission.

    A synchronous device has done its work when it returns from `submit`.
    """

    def __init__(self, clock: Clock, *, is_synchronous: bool = False) -> None:
        self.clock = clock
        self._is_synchronous = is_synchronous
        self._live: list[Work] = []

    def submit(self, seconds: float, effects: Effects) -> Work:
        """Start work that ends after `seconds`: zero ends at once, `HANG` never."""
        work = Work(self, self.clock.now() + seconds, effects)
        self._live.append(work)
        if self._is_synchronous:
            self.clock.wait_until(work.end)
        self.catch_up()
        return work

    def occupy(self, seconds: float) -> None:
        """Keep the caller busy for a while, as drafting does, while submitted work goes on."""
        self.clock.wait_until(self.clock.now() + seconds)
        self.catch_up()

    def catch_up(self) -> None:
        """Let all work take effect whose end has come."""
        for work in sorted(self._live, key=lambda work: work.end):
            if work.end <= self.clock.now():
                self._live.remove(work)
                work.take_effect()

    def forget(self, work: Work) -> None:
        """Drop work before it takes effect."""
        self._live.remove(work)


class Work:
    """One submission; it is its own completion."""

    def __init__(self, device: Device, end: float, effects: Effects) -> None:
        self.end = end
        self.state = WorkState.RUNNING
        self._device = device
        self._effects = effects
        self._callbacks: list[Callable[[], None]] = []

    def take_effect(self) -> None:
        """Run the effects and tell whoever asked; called by the device at the end."""
        self._effects.run()
        self._end(WorkState.ENDED)

    def is_complete(self) -> bool:
        """Return whether the work has ended."""
        self._device.catch_up()
        return self.state in {WorkState.ENDED, WorkState.TORN_DOWN}

    def wait(self) -> None:
        """Let time pass to the end of the work; raise the error it ended with.

        Raises:
            EngineError: also where the work hangs, and nobody could wait for it.
        """
        if not self.is_complete():
            if self.end == HANG:
                raise EngineError("scripted work hangs: an unbounded wait would never return")
            self._device.clock.wait_until(self.end)
            self._device.catch_up()
        self._report()

    def wait_bounded(self, policy: BoundedWait) -> Completed | DeadlineExceeded:
        """Wait to the end or the deadline, whichever is first, and apply the disposition."""
        if self.state is WorkState.QUARANTINED:
            raise EngineError("the work was quarantined by an earlier wait")
        deadline = self._device.clock.now() + policy.timeout
        if self.is_complete() or self.end <= deadline:
            self.wait()
            return Completed()
        self._device.clock.wait_until(deadline)
        self._dispose(policy.cancellation)
        return DeadlineExceeded(policy.cancellation)

    def on_complete(self, callback: Callable[[], None]) -> None:
        """Call back once the end has come, from whichever thread notices."""
        self._callbacks.append(callback)
        if self.is_complete():
            self._notify()
        elif self.end != HANG:
            self._device.clock.call_at(self.end, self._notify)

    def _dispose(self, cancellation: CompletionCancellation) -> None:
        if cancellation is CompletionCancellation.NATIVE_CANCEL:
            self._device.forget(self)
            self._end(WorkState.TORN_DOWN)
        else:
            self.state = WorkState.QUARANTINED

    def _end(self, state: WorkState) -> None:
        self.state = state
        self._effects.settle()
        self._notify()

    def _report(self) -> None:
        if self.state is WorkState.TORN_DOWN:
            raise CompletionDeadline(CompletionCancellation.NATIVE_CANCEL.value)
        if self._effects.error is not None:
            raise self._effects.error
        self._effects.on_success()

    def _notify(self) -> None:
        with suppress(IndexError):
            while True:
                self._callbacks.pop()()
