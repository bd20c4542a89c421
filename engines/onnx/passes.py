"""Pure decisions about a pass: which lanes share an engine call, and its shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Tokens = Sequence[int]


@dataclass(frozen=True, slots=True)
class LaneInput:
    """Tokens to append to a lane from position `start`; logits are wanted of the last `wanted`."""

    slot: int
    start: int
    tokens: Tokens
    wanted: int


@dataclass(frozen=True, slots=True)
class PlacedLane:
    """A lane of a pass: its index in the caller's list, its cache row, its rows of work."""

    index: int
    row: int
    start: int
    rows: int


@dataclass(frozen=True, slots=True)
class EngineCall:
    """Lanes, in row order, that one call computes; it covers cache rows `first` to `last`."""

    lanes: tuple[PlacedLane, ...]

    @property
    def first(self) -> int:
        return self.lanes[0].row

    @property
    def span(self) -> int:
        """Cache rows covered, idle ones between the lanes included."""
        return self.lanes[-1].row - self.first + 1

    @property
    def widest(self) -> int:
        return max(lane.rows for lane in self.lanes)

    @property
    def rows(self) -> int:
        return sum(lane.rows for lane in self.lanes)

    @property
    def padding(self) -> int:
        """Places of attention that no row fills."""
        return self.span * self.widest - self.rows


@dataclass(frozen=True, slots=True)
class CallLimits:
    """Bounds of one call: packed rows, and padded places times cache columns.

    A further call reads every weight once more; padding costs attention over
    the whole capacity. Beyond `padding_columns` the padding costs more.
    """

    max_rows: int
    padding_columns: int = 12288


def plan_calls(
    lanes: Sequence[PlacedLane], capacity: int, limits: CallLimits
) -> tuple[EngineCall, ...]:
    """Group lanes into calls: neighbours share one while rows and padding stay in bounds.

    Every lane must fit alone. The grouping changes no result, only its cost.
    """
    calls: list[EngineCall] = []
    for lane in sorted(lanes, key=lambda each: each.row):
        if calls:
            joined = EngineCall((*calls[-1].lanes, lane))
            if joined.rows <= limits.max_rows and (
                joined.padding * capacity <= limits.padding_columns
            ):
                calls[-1] = joined
                continue
        calls.append(EngineCall((lane,)))
    return tuple(calls)
