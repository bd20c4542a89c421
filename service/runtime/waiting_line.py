"""Who waits for a slot, and who is next: pure decisions, no threads."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

_SHORTEST_RETRY = 0.1
_LONGEST_RETRY = 60.0
_UNKNOWN_RETRY = 1.0


class Waiting(Protocol):
    """Anything that waits on behalf of a caller."""

    @property
    def caller(self) -> str:
        """Return who asked."""


T = TypeVar("T", bound=Waiting)


class WaitingLine(Generic[T]):
    """A line for each caller, in order of arrival; callers take turns."""

    def __init__(self) -> None:
        self._lines: OrderedDict[str, deque[T]] = OrderedDict()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        for line in self._lines.values():
            yield from line

    def join(self, entry: T) -> None:
        """Put an entry behind those of its caller."""
        self._lines.setdefault(entry.caller, deque()).append(entry)
        self._length += 1

    def take(self) -> T | None:
        """Remove and return the next entry; its caller goes to the back."""
        if not self._lines:
            return None
        caller, line = self._lines.popitem(last=False)
        if len(line) > 1:
            self._lines[caller] = line
        self._length -= 1
        return line.popleft()

    def remove(self, leaves: Callable[[T], bool]) -> list[T]:
        """Remove and return every entry of which `leaves` is true; the others keep their order."""
        leaving = [entry for entry in self if leaves(entry)]
        if leaving:
            self._keep({id(entry) for entry in leaving})
        return leaving

    def _keep(self, leaving: set[int]) -> None:
        kept: OrderedDict[str, deque[T]] = OrderedDict()
        for caller, line in self._lines.items():
            staying = deque(entry for entry in line if id(entry) not in leaving)
            if staying:
                kept[caller] = staying
        self._lines = kept
        self._length = sum(len(line) for line in kept.values())


def retry_seconds(mean_seconds: float | None, slots: int) -> float:
    """Return how long a full line takes to move by one, from the mean time in a slot.

    A guess where no request has ended yet (None); never below 0.1 or above 60.
    """
    if mean_seconds is None:
        return _UNKNOWN_RETRY
    return min(_LONGEST_RETRY, max(_SHORTEST_RETRY, mean_seconds / slots))
