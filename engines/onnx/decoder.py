"""A decoder over slots: append tokens to lanes, get logits, shorten lanes by a number."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.bundle.bundle import Bundle
from engines.onnx.bindings import Bindings
from engines.onnx.caches import KvCaches, capacity_for
from engines.onnx.inputs import CallInputs
from engines.onnx.logits import LaneLogits
from engines.onnx.passes import CallLimits, EngineCall, LaneInput, PlacedLane, plan_calls
from engines.onnx.session import open_session
from engines.onnx.slots import SlotTable
from service.errors import EngineError

Floats = NDArray[np.float32]

MAX_ROWS = 128
"""Rows of one call, up to which passes were proved bit-equal to single rows."""


@dataclass(frozen=True, slots=True)
class CacheMemory:
    """Bytes of key and value caches: addressed now, and at most under these settings."""

    reserved_bytes: int
    limit_bytes: int


class Decoder:
    """One model with caches for `max_slots` lanes of at most `max_context` tokens.

    Used from one thread. A slot's committed content is its first `length`
    columns; anything beyond may be overwritten by any pass.
    """

    def __init__(
        self, bundle: Bundle, *, max_slots: int, max_context: int, threads: int | None = None
    ) -> None:
        geometry = bundle.manifest.geometry
        if not 0 < max_context <= geometry.context_length:
            message = f"max_context {max_context} is not within 1 to {geometry.context_length}"
            raise EngineError(message)
        self.max_slots = max_slots
        self.threads = threads or len(os.sched_getaffinity(0))
        self.max_context = max_context
        self.max_rows = MAX_ROWS
        self.vocabulary_size = geometry.vocabulary
        self._geometry = geometry
        # A lane at its last token still leaves columns for the widest pass beside it.
        self._max_capacity = capacity_for(max_context + MAX_ROWS)
        self._limits = CallLimits(MAX_ROWS)
        self._slots = SlotTable(max_slots)
        self._caches = KvCaches(geometry, max_slots, self._max_capacity)
        self._bindings = Bindings(open_session(bundle, self.threads), self._caches)
        self._inputs = CallInputs(self._limits, max_slots, geometry.context_length)
        self._logits = np.empty((MAX_ROWS, geometry.vocabulary), np.float32)

    @property
    def memory(self) -> CacheMemory:
        """Bytes of the caches; the limit includes room beyond the last token of a lane."""
        limit = self.max_slots * self._max_capacity * self._geometry.cache_bytes_per_token
        return CacheMemory(self._caches.reserved_bytes, limit)

    def open(self) -> int:
        """Take a slot with an empty lane; raises NoFreeSlot when there is none."""
        return self._slots.open()

    def close(self, slot: int) -> None:
        """Free a slot. Another lane's cache may move; raises UnknownSlot if it is not open."""
        move = self._slots.close(slot)
        if move is not None:
            self._caches.copy_row(move.source, move.destination, move.length)
        self._shrink()

    def retire(self, slot: int) -> None:
        """Forget a slot and never use its row again; raises UnknownSlot if it is not open."""
        self._slots.retire(slot)

    def length(self, slot: int) -> int:
        """Count the tokens in a lane's cache."""
        return self._slots.length(slot)

    def truncate(self, slot: int, length: int) -> None:
        """Roll a lane back to its first `length` tokens; costs nothing."""
        self._slots.truncate(slot, length)

    def forward(self, lanes: Sequence[LaneInput], buffer: Floats | None = None) -> LaneLogits:
        """Append each lane's tokens and compute the logits of its last `wanted` rows.

        The logits lie in `buffer` `[rows, vocabulary]`, which holds all wanted
        rows at least, or else in the decoder's own, which the next call
        overwrites. A lane may have one row or `max_rows`; lanes are split over
        several engine calls where one would exceed that or would mostly compute
        padding. A lane longer than its `start` is truncated to it first, and
        stays so if the call fails.

        Raises EngineError for a lane that is given twice, is shorter than its
        `start`, has no tokens or more than `max_rows`, or would pass
        `max_context`; UnknownSlot. Then no lane has changed.
        """
        placed = self._place_all(lanes)
        for lane in lanes:
            self._slots.truncate(lane.slot, lane.start)
        calls = self._plan(placed)
        order = tuple(lane.index for call in calls for lane in call.lanes)
        wanted = sum(lane.wanted for lane in lanes)
        logits = self._own_buffer(wanted) if buffer is None else buffer
        output = LaneLogits.arrange(logits[:wanted], [lane.wanted for lane in lanes], order)
        for call in calls:
            self._run(call, lanes, output)
        for lane in lanes:
            self._slots.set_length(lane.slot, lane.start + len(lane.tokens))
        return output

    def _place_all(self, lanes: Sequence[LaneInput]) -> list[PlacedLane]:
        if len({lane.slot for lane in lanes}) < len(lanes):
            raise EngineError("a pass has two lanes of one slot")
        return [self._place(index, lane) for index, lane in enumerate(lanes)]

    def _place(self, index: int, lane: LaneInput) -> PlacedLane:
        rows, end = len(lane.tokens), lane.start + len(lane.tokens)
        if not 0 < rows <= self.max_rows or not 0 <= lane.wanted <= rows:
            message = f"slot {lane.slot}: {rows} rows with {lane.wanted} wanted"
            raise EngineError(f"{message} are not within 1 to {self.max_rows}")
        if not 0 <= lane.start <= self.length(lane.slot):
            message = f"slot {lane.slot} holds {self.length(lane.slot)} tokens"
            raise EngineError(f"{message} and cannot go on from {lane.start}")
        if end > self.max_context:
            raise EngineError(f"slot {lane.slot} would hold {end} of {self.max_context} tokens")
        return PlacedLane(index, self._slots.row(lane.slot), lane.start, rows)

    def _plan(self, placed: Sequence[PlacedLane]) -> tuple[EngineCall, ...]:
        """Plan calls and make the caches hold them; a larger capacity may part them further."""
        calls = plan_calls(placed, self._caches.capacity, self._limits)
        needed = max(self._columns(call) for call in calls)
        if needed <= self._caches.capacity:
            return calls
        self._resize(capacity_for(needed))
        return plan_calls(placed, self._caches.capacity, self._limits)

    def _columns(self, call: EngineCall) -> int:
        """Count the columns that a call needs: every row of its span writes `widest` of them."""
        lengths = self._slots.lengths[call.first : call.first + call.span]
        return max(lengths) + call.widest

    def _own_buffer(self, rows: int) -> Floats:
        if rows > len(self._logits):
            self._logits = np.empty((rows, self.vocabulary_size), np.float32)
        return self._logits

    def _run(self, call: EngineCall, lanes: Sequence[LaneInput], output: LaneLogits) -> None:
        shape = self._inputs.write(call, lanes, self._slots.lengths)
        first = output.first[call.lanes[0].index]
        binding = self._bindings.range(call.first, call.span)
        binding.bind(shape, self._inputs, output.rows[first : first + shape.wanted])
        try:
            binding.run()
        except Exception as failed:
            raise EngineError(f"ONNX Runtime failed: {failed}") from failed

    def _shrink(self) -> None:
        """Give memory back once half the capacity would do."""
        needed = capacity_for(max(self._slots.lengths, default=0) + 1)
        if 2 * needed <= self._caches.capacity:
            self._resize(needed)

    def _resize(self, capacity: int) -> None:
        self._caches.resize(capacity, self._slots.lengths)
        self._inputs.reserve(capacity)
        self._bindings.forget()
