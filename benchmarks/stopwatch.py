"""Time spent in a method, summed up while a context lasts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Stopwatch:
    """Seconds and calls of one method."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.calls = 0

    def around(self, method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method with its time taken."""

        def timed(*arguments: object) -> object:
            started = time.perf_counter()
            try:
                return method(*arguments)
            finally:
                self.seconds += time.perf_counter() - started
                self.calls += 1

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
