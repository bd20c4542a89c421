"""What a pass costs: milliseconds by lanes and rows, as an engine measured them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_REFERENCE_ROWS = 5

Point = tuple[int, float]


def _interpolate(points: tuple[Point, ...], x: int) -> float:
    """Return y at x: flat before the first point, the last slope after the last."""
    first_x, first_y = points[0]
    if x <= first_x or len(points) == 1:
        return first_y
    right = next((i for i in range(1, len(points)) if x <= points[i][0]), len(points) - 1)
    (left_x, left_y), (right_x, right_y) = points[right - 1], points[right]
    return left_y + (x - left_x) * (right_y - left_y) / (right_x - left_x)


@dataclass(frozen=True, slots=True)
class RowCurve:
    """Milliseconds of a pass of `lanes` lanes by rows a lane, ascending by rows."""

    lanes: int
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class CostCurve:
    """The measured cost of a pass: one curve for each measured number of lanes, ascending.

    Rows are rows a lane: a pass is padded to its widest lane.
    """

    curves: tuple[RowCurve, ...]

    @classmethod
    def from_points(cls, milliseconds: Mapping[tuple[int, int], float]) -> CostCurve:
        """Build a curve from measurements by (lanes, rows).

        Noise is removed in one direction only: more rows never cost less.

        Raises:
            ValueError: nothing was measured, or a key or a cost is not positive.
        """
        if not milliseconds:
            raise ValueError("a cost curve needs at least one measurement")
        if any(min(*key, cost) <= 0 for key, cost in milliseconds.items()):
            raise ValueError("lanes, rows and milliseconds of a cost curve must be positive")
        measured_lanes = sorted({lanes for lanes, _ in milliseconds})
        return cls(tuple(_row_curve(lanes, milliseconds) for lanes in measured_lanes))

    def milliseconds(self, lanes: int, rows: int) -> float:
        """Return the cost of a pass of `lanes` lanes with `rows` rows each, interpolated."""
        by_lanes = tuple((curve.lanes, _interpolate(curve.points, rows)) for curve in self.curves)
        return _interpolate(by_lanes, lanes)

    def by_width(
        self, lanes: int, max_width: int, draft_milliseconds: float = 0.0
    ) -> tuple[float, ...]:
        """Return the cost of a round by its width, from 0 (one row) to `max_width`.

        `draft_milliseconds` is what drafting one more proposal costs.
        """
        return tuple(
            self.milliseconds(lanes, width + 1) + width * draft_milliseconds
            for width in range(max_width + 1)
        )

    def row_cost(self, lanes: int) -> float:
        """Return what one more row costs, as a fraction of a pass of one row a lane."""
        plain = self.milliseconds(lanes, 1)
        wide = self.milliseconds(lanes, _REFERENCE_ROWS)
        return (wide - plain) / ((_REFERENCE_ROWS - 1) * plain)


def _row_curve(lanes: int, milliseconds: Mapping[tuple[int, int], float]) -> RowCurve:
    measured = sorted((rows, cost) for (of, rows), cost in milliseconds.items() if of == lanes)
    points: list[Point] = []
    highest = 0.0
    for rows, cost in measured:
        highest = max(highest, cost)
        points.append((rows, highest))
    return RowCurve(lanes, tuple(points))
