"""The cache of the scripted engine: cells that hold tokens, and boundaries between them.

A cell keeps what was last written to it, like device memory: opening, closing
and restoring move boundaries only. What a row is computed from is read from
the cells, so whatever writes at the wrong place or time changes the output.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from engines.scripted.vocabulary import Special
from service.errors import EngineError, NoFreeSlot, UnknownSlot
from service.speculation.contract import Tokens


class SlotState(Enum):
    """Who may use a slot."""

    FREE = "free"
    OPEN = "open"
    CLOSED = "closed"
    ABANDONED = "abandoned"


@dataclass(slots=True)
class _Slot:
    state: SlotState = SlotState.FREE
    cells: list[int] = field(default_factory=list)
    boundary: int = 0
    generation: int = 0
    writers: int = 0


class SlotCache:
    """Slots of `capacity` cells; a closed one is free again once nothing can write to it."""

    def __init__(self, slots: int, capacity: int) -> None:
        self._slots = [_Slot() for _ in range(slots)]
        self._capacity = capacity

    def open(self) -> int:
        """Take the lowest free slot, with an empty range; its cells keep their old contents."""
        for number, slot in enumerate(self._slots):
            if slot.state is SlotState.FREE:
                slot.state, slot.boundary = SlotState.OPEN, 0
                slot.generation += 1
                return number
        raise NoFreeSlot

    def close(self, number: int) -> None:
        """Free a slot, now or when its last writer is done."""
        self._opened(number).state = SlotState.CLOSED
        self._free_if_idle(number)

    def abandon(self, number: int) -> None:
        """Retire a slot for good."""
        self._opened(number).state = SlotState.ABANDONED

    def state(self, number: int) -> SlotState:
        """Return who may use a slot."""
        return self._slots[number].state

    def boundary(self, number: int) -> int:
        """Return how many cells of an open slot count."""
        return self._opened(number).boundary

    def generation(self, number: int) -> int:
        """Return how often a slot has been opened."""
        return self._opened(number).generation

    def move_boundary(self, number: int, boundary: int) -> None:
        """Let another number of cells count."""
        if not 0 <= boundary <= self._capacity:
            raise EngineError(f"cache slot {number} cannot hold {boundary} tokens")
        self._opened(number).boundary = boundary

    def begin_write(self, number: int) -> None:
        """Note that unfinished work will write to a slot."""
        self._opened(number).writers += 1

    def end_write(self, number: int) -> None:
        """Note that it will write no more."""
        self._slots[number].writers -= 1
        self._free_if_idle(number)

    def write(self, number: int, position: int, tokens: Tokens) -> None:
        """Write cells, whoever uses the slot by now."""
        cells = self._slots[number].cells
        missing = position + len(tokens) - len(cells)
        cells.extend([Special.PAD] * missing)
        cells[position : position + len(tokens)] = tokens

    def read(self, number: int, length: int) -> Tokens:
        """Return the first cells of a slot."""
        return tuple(self._slots[number].cells[:length])

    def _opened(self, number: int) -> _Slot:
        known = 0 <= number < len(self._slots)
        if not known or self._slots[number].state is not SlotState.OPEN:
            raise UnknownSlot(number)
        return self._slots[number]

    def _free_if_idle(self, number: int) -> None:
        slot = self._slots[number]
        if slot.state is SlotState.CLOSED and not slot.writers:
            slot.state = SlotState.FREE
