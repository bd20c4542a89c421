"""Time for scripted work: moved by hand in tests, the machine's own when serving."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Protocol


class Clock(Protocol):
    """Seconds that only grow, and calls at a given time."""

    def now(self) -> float:
        """Return the time."""

    def wait_until(self, when: float) -> None:
        """Return once the time is at least `when`."""

    def call_at(self, when: float, callback: Callable[[], None]) -> None:
        """Call back once at `when`, from any thread."""


class ManualClock:
    """A clock that stands still until it is advanced; whoever waits advances it."""

    def __init__(self) -> None:
        self._now = 0.0
        self._order = count()
        self._calls: list[tuple[float, int, Callable[[], None]]] = []

    def now(self) -> float:
        """Return the time."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Let time pass, and make the calls that fall due in their order."""
        self.wait_until(self._now + seconds)

    def wait_until(self, when: float) -> None:
        """Let time pass until `when`; the past is no wait."""
        while self._calls and self._calls[0][0] <= when:
            due, _, callback = heapq.heappop(self._calls)
            self._now = max(self._now, due)
            callback()
        self._now = max(self._now, when)

    def call_at(self, when: float, callback: Callable[[], None]) -> None:
        """Call back when time gets there, which takes a later advance."""
        heapq.heappush(self._calls, (when, next(self._order), callback))

    def next_call(self) -> float | None:
        """Return when the next call falls due."""
        return self._calls[0][0] if self._calls else None


class MonotonicClock:
    """The machine's monotonic clock; calls come from a timer thread of their own."""

    def now(self) -> float:
        """Return the time."""
        return time.monotonic()

    def wait_until(self, when: float) -> None:
        """Sleep until `when`."""
        time.sleep(max(0.0, when - self.now()))

    def call_at(self, when: float, callback: Callable[[], None]) -> None:
        """Call back from a daemon thread, never early."""

        def call() -> None:
            self.wait_until(when)
            callback()

        timer = threading.Timer(max(0.0, when - self.now()), call)
        timer.daemon = True
        timer.start()
