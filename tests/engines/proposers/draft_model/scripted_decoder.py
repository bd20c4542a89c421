"""A decoder whose logits are a hash of what its cache really holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np

from service.errors import EngineError, NoFreeSlot


class Input(NamedTuple):
    slot: int
    start: int
    tokens: tuple[int, ...]
    wanted: int


@cache
def logits_after(tokens: tuple[int, ...], vocabulary: int) -> np.ndarray:
    """Return the model's row `[vocabulary]` after a history, from nothing but that history."""
    seed = hash(tokens) & 0xFFFFFFFF
    return np.random.default_rng(seed).normal(0.0, 2.0, vocabulary).astype(np.float32)


@dataclass
class ScriptedDecoder:
    """Slots are lists of tokens; a row is computed from the list, never from the request.

    Calls with `broken` slots fail, rows of `poisoned` ones are not numbers;
    `passes` records each call's rows by slot.
    """

    max_slots: int = 4
    max_context: int = 1000
    vocabulary_size: int = 11
    slots: dict[int, list[int]] = field(default_factory=dict)
    broken: set[int] = field(default_factory=set)
    poisoned: set[int] = field(default_factory=set)
    passes: list[dict[int, int]] = field(default_factory=list)

    def open(self) -> int:
        free = [slot for slot in range(100, 100 + self.max_slots) if slot not in self.slots]
        if not free:
            raise NoFreeSlot
        self.slots[free[-1]] = []
        return free[-1]

    def close(self, slot: int) -> None:
        del self.slots[slot]

    def truncate(self, slot: int, length: int) -> None:
        assert length <= len(self.slots[slot])
        del self.slots[slot][length:]

    def forward(self, lanes: Sequence[Input]) -> list[np.ndarray]:
        self.passes.append({lane.slot: len(lane.tokens) for lane in lanes})
        for lane in lanes:
            if lane.slot in self.broken:
                raise EngineError(f"slot {lane.slot} is broken")
        return [self._append(lane) for lane in lanes]

    def _append(self, lane: Input) -> np.ndarray:
        held = self.slots[lane.slot]
        assert len(held) == lane.start, "a pass must begin where the cache ends"
        assert lane.start + len(lane.tokens) <= self.max_context
        held += lane.tokens
        rows = [
            logits_after(tuple(held[: len(held) - back]), self.vocabulary_size)
            for back in reversed(range(lane.wanted))
        ]
        if lane.slot in self.poisoned:
            rows = [np.full_like(row, np.nan) for row in rows]
        return np.array(rows, np.float32).reshape(lane.wanted, self.vocabulary_size)
