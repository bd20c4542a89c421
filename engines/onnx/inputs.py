"""The small inputs of a call, written in place into arrays that stay where they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engines.onnx.caches import MIN_CAPACITY
from engines.onnx.passes import CallLimits, EngineCall, LaneInput, PlacedLane

Integers = NDArray[np.int64]

HIDDEN = np.float32(-1e9)
"""Added to the score of a column that a row must not see; its share underflows to zero."""


@dataclass(frozen=True, slots=True)
class InputShape:
    """Everything the shapes of a call's inputs depend on."""

    rows: int
    span: int
    widest: int
    capacity: int
    wanted: int


class CallInputs:
    """Arrays for the routing inputs of `engines.build.routing`, reused by every call."""

    def __init__(self, limits: CallLimits, max_slots: int, context_length: int) -> None:
        places = limits.max_rows + limits.padding_columns // MIN_CAPACITY
        self._limits = limits
        self._ids = np.zeros(limits.max_rows, np.int64)
        self._places = np.zeros(limits.max_rows, np.int64)
        self._wanted = np.zeros(limits.max_rows, np.int64)
        self._spread = np.zeros(places, np.int64)
        self._positions = np.zeros(places, np.int64)
        self._starts = np.zeros(max_slots, np.int64)
        self._counting = np.arange(limits.max_rows, dtype=np.int64)
        self._last_position = context_length - 1
        self.reserve(MIN_CAPACITY)

    def reserve(self, capacity: int) -> None:
        """Make masks fit a capacity; this moves the mask, so bindings must be renewed."""
        floats = self._limits.max_rows * capacity + self._limits.padding_columns
        self._mask = np.zeros(floats, np.float32)
        self._columns = np.arange(capacity, dtype=np.int64)

    def write(
        self, call: EngineCall, lanes: Sequence[LaneInput], lengths: Sequence[int]
    ) -> InputShape:
        """Fill the arrays for a call; `lengths` are those of all cache rows in use.

        Rows of the span that no lane of the call holds, and places beyond a
        lane's own rows, compute garbage and write it beyond the lane's length.
        """
        span, widest = call.span, call.widest
        starts = self._starts[:span]
        starts[:] = lengths[call.first : call.first + span]
        spread = self._spread[: span * widest].reshape(span, widest)
        if span > len(call.lanes):
            spread[:] = 0
        packed = wanted = 0
        for lane in call.lanes:
            starts[lane.row - call.first] = lane.start
            self._write_lane(lane, lanes[lane.index], spread[lane.row - call.first], packed)
            asked = lanes[lane.index].wanted
            first_wanted = packed + lane.rows - asked
            self._wanted[wanted : wanted + asked] = self._counting[:asked] + first_wanted
            self._places[packed : packed + lane.rows] = (
                self._counting[: lane.rows] + (lane.row - call.first) * widest
            )
            packed += lane.rows
            wanted += asked
        self._write_columns(starts, widest)
        return InputShape(packed, span, widest, len(self._columns), wanted)

    def views(self, shape: InputShape) -> dict[str, NDArray[Any]]:
        """Give the arrays as a call of this shape takes them."""
        places = shape.span * shape.widest
        by_lane = (shape.span, shape.widest)
        mask = self._mask[: places * shape.capacity]
        return {
            "ids": self._ids[: shape.rows],
            "places": self._places[: shape.rows],
            "rows": self._wanted[: shape.wanted],
            "write": self._starts[: shape.span],
            "spread": self._spread[:places].reshape(by_lane),
            "positions": self._positions[:places].reshape(by_lane),
            "mask": mask.reshape(shape.span, 1, shape.widest, shape.capacity),
        }

    def _write_lane(
        self, lane: PlacedLane, given: LaneInput, spread: Integers, packed: int
    ) -> None:
        self._ids[packed : packed + lane.rows] = given.tokens
        spread[: lane.rows] = self._counting[: lane.rows] + packed
        spread[lane.rows :] = packed

    def _write_columns(self, starts: Integers, widest: int) -> None:
        """Derive positions and mask: row s of a lane sees the columns up to its own."""
        places = len(starts) * widest
        last_seen = starts[:, None] + self._counting[:widest]
        positions = self._positions[:places].reshape(len(starts), widest)
        np.minimum(last_seen, self._last_position, out=positions)
        mask = self._mask[: places * len(self._columns)]
        hidden = self._columns > last_seen[:, :, None]
        np.multiply(hidden, HIDDEN, out=mask.reshape(hidden.shape))
