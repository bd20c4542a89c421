"""How long each pass takes, by its number from one on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Timetable:
    """Seconds of every pass, and of those that differ; infinity is a pass that hangs."""

    usual: float = 0.0
    by_pass: Mapping[int, float] = field(default_factory=dict)

    def seconds(self, number: int) -> float:
        """Return the seconds of one pass."""
        return self.by_pass.get(number, self.usual)
