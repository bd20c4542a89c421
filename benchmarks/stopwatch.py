"""Time spent in a method, summed up while a context lasts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Stopwatch:
    """Seconds spent in one method, by the clock and by its thread's processor time."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.busy = 0.0

    def around(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method with its time taken."""

        def timed(*arguments: object) -> object:
            started, busy = time.perf_counter(), time.thread_time()
            try:
                return method(*arguments)
            finally:
                self.seconds += time.perf_counter() - started
                self.busy += time.thread_time() - busy

        return timed


@contextmanager
def timing(owner: type, method: str) -> Iterator[Stopwatch]:
    """Time a method of a class, whoever calls it."""
    watch, original = Stopwatch(), getattr(owner, method)
    setattr(owner, method, watch.around(original))
    try:
        yield watch
    finally:
        setattr(owner, method, original)
