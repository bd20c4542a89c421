"""Cells keep what is written to them; slots say who may look."""

import pytest

from engines.scripted.cache import SlotCache, SlotState
from engines.scripted.vocabulary import Special
from service.errors import EngineError, NoFreeSlot, UnknownSlot


@pytest.fixture
def cache() -> SlotCache:
    return SlotCache(slots=2, capacity=10)


def test_write_lands_whoever_uses_the_slot(cache) -> None:
    """A late write is seen by the slot's next lane, if it is let in too early."""
    slot = cache.open()
    cache.close(slot)
    assert slot == cache.open()
    cache.write(slot, 0, (1, 2, 3))

    cache.write(slot, 1, (9,))

    assert (1, 9, 3) == cache.read(slot, 3)


def test_write_beyond_the_end_leaves_a_visible_gap(cache) -> None:
    slot = cache.open()

    cache.write(slot, 2, (7,))

    assert (Special.PAD, Special.PAD, 7) == cache.read(slot, 3)


def test_moved_boundary_keeps_the_cells(cache) -> None:
    slot = cache.open()
    cache.write(slot, 0, (1, 2, 3))
    cache.move_boundary(slot, 3)

    cache.move_boundary(slot, 1)

    assert 1 == cache.boundary(slot)
    assert (1, 2, 3) == cache.read(slot, 3)


@pytest.mark.parametrize("boundary", [-1, 11])
def test_boundary_outside_the_slot_is_refused(cache, boundary) -> None:
    slot = cache.open()

    with pytest.raises(EngineError):
        cache.move_boundary(slot, boundary)

    assert 0 == cache.boundary(slot)


def test_closed_slot_waits_for_its_writers(cache) -> None:
    slot, _ = cache.open(), cache.open()
    cache.begin_write(slot)
    cache.begin_write(slot)
    cache.close(slot)

    cache.end_write(slot)
    assert SlotState.CLOSED is cache.state(slot)
    with pytest.raises(NoFreeSlot):
        cache.open()

    cache.end_write(slot)
    assert SlotState.FREE is cache.state(slot)


def test_abandoned_slot_stays_so_when_its_writers_end(cache) -> None:
    slot = cache.open()
    cache.begin_write(slot)
    cache.abandon(slot)

    cache.end_write(slot)

    assert SlotState.ABANDONED is cache.state(slot)


def test_generation_counts_the_openings(cache) -> None:
    first = cache.open()
    before = cache.generation(first)
    cache.close(first)

    assert first == cache.open()
    assert before + 1 == cache.generation(first)


@pytest.mark.parametrize("slot", [-1, 0, 2])
def test_slot_that_is_not_open_is_unknown(cache, slot) -> None:
    for call in (cache.boundary, cache.close, cache.abandon, cache.generation, cache.begin_write):
        with pytest.raises(UnknownSlot):
            call(slot)
