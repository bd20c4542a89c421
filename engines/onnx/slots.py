"""Which cache row belongs to which slot, and how long each lane is."""

from __future__ import annotations

from dataclasses import dataclass

from service.errors import EngineError, NoFreeSlot, UnknownSlot


@dataclass(frozen=True, slots=True)
class RowMove:
    """A lane of `length` columns moves from row `source` down to row `destination`."""

    source: int
    destination: int
    length: int


class SlotTable:
    """Slots in use, packed into the lowest rows.

    A slot is a number that is never handed out twice, so a stale one is
    recognised; the row behind it may change when another slot closes.
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._slots: list[int] = []
        self._lengths: list[int] = []
        self._next_slot = 0

    @property
    def lengths(self) -> list[int]:
        """The lengths of the rows in use, from row zero up."""
        return self._lengths

    def open(self) -> int:
        """Take the lowest free row; raises NoFreeSlot when there is none."""
        if len(self._slots) == self._rows:
            raise NoFreeSlot
        slot = self._next_slot
        self._next_slot += 1
        self._slots.append(slot)
        self._lengths.append(0)
        return slot

    def close(self, slot: int) -> RowMove | None:
        """Free a slot; the lane of the highest row, if it is another, moves into its row."""
        row = self.row(slot)
        last_slot, last_length = self._slots.pop(), self._lengths.pop()
        if last_slot == slot:
            return None
        self._slots[row], self._lengths[row] = last_slot, last_length
        return RowMove(len(self._slots), row, last_length)

    def retire(self, slot: int) -> None:
        """Make a slot unknown without freeing its row: the row goes to a number nobody has."""
        row = self.row(slot)
        self._slots[row], self._lengths[row] = self._next_slot, 0
        self._next_slot += 1

    def row(self, slot: int) -> int:
        """Find a slot's row; raises UnknownSlot when it is not open."""
        try:
            return self._slots.index(slot)
        except ValueError:
            raise UnknownSlot(slot) from None

    def length(self, slot: int) -> int:
        return self._lengths[self.row(slot)]

    def set_length(self, slot: int, length: int) -> None:
        self._lengths[self.row(slot)] = length

    def truncate(self, slot: int, length: int) -> None:
        """Shorten a lane; raises EngineError when it is shorter already."""
        current = self.length(slot)
        if not 0 <= length <= current:
            raise EngineError(f"cannot truncate slot {slot} from {current} to {length} tokens")
        self.set_length(slot, length)
