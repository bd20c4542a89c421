"""What every measurement is given: how much to do, and whom to tell how far it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Bench:
    """A run of measurements; `quick` shows that they work, and measures nothing well.

    What is compared is done `repetitions` times. `tell` is told the step that
    begins, and of how many.
    """

    quick: bool
    repetitions: int
    tell: Callable[[str, int, int], None]

    def size(self, whole: T, quick: T) -> T:
        """Choose an amount of work."""
        return quick if self.quick else whole
