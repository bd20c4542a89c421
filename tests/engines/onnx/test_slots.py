"""Slots: packed rows, stale handles, lengths."""

import pytest

from engines.onnx.slots import RowMove, SlotTable
from service.errors import EngineError, NoFreeSlot, UnknownSlot


def table_of(*lengths: int) -> tuple[SlotTable, list[int]]:
    table = SlotTable(4)
    slots = [table.open() for _ in lengths]
    for slot, length in zip(slots, lengths, strict=True):
        table.set_length(slot, length)
    return table, slots


def test_slots_opened_take_the_lowest_rows() -> None:
    table, slots = table_of(5, 6, 7)

    assert [0, 1, 2] == [table.row(slot) for slot in slots]
    assert [5, 6, 7] == table.lengths


def test_slot_beyond_the_rows_is_refused() -> None:
    table, _ = table_of(1, 1, 1, 1)

    with pytest.raises(NoFreeSlot):
        table.open()


def test_slot_closed_in_the_middle_is_filled_by_the_last() -> None:
    table, (first, second, third) = table_of(5, 6, 7)

    assert RowMove(source=2, destination=0, length=7) == table.close(first)

    assert [7, 6] == table.lengths
    assert (0, 1) == (table.row(third), table.row(second))


def test_slot_closed_at_the_end_moves_nothing() -> None:
    table, slots = table_of(5, 6)

    assert table.close(slots[1]) is None
    assert [5] == table.lengths


def test_slot_number_is_never_used_twice() -> None:
    table, (slot,) = table_of(5)
    table.close(slot)

    assert slot != table.open()
    for call in (table.row, table.close, table.length):
        with pytest.raises(UnknownSlot):
            call(slot)


def test_slot_that_retires_keeps_its_row_occupied() -> None:
    table, slots = table_of(5, 6, 7, 8)
    table.retire(slots[1])

    with pytest.raises(UnknownSlot):
        table.row(slots[1])
    with pytest.raises(NoFreeSlot):
        table.open()
    assert [5, 0, 7, 8] == table.lengths


@pytest.mark.parametrize("length", [-1, 6])
def test_truncation_to_an_impossible_length_changes_nothing(length) -> None:
    table, (slot,) = table_of(5)

    with pytest.raises(EngineError):
        table.truncate(slot, length)

    assert 5 == table.length(slot)


@pytest.mark.parametrize("length", [0, 3, 5])
def test_truncation_sets_the_length(length) -> None:
    table, (slot,) = table_of(5)

    table.truncate(slot, length)

    assert length == table.length(slot)
