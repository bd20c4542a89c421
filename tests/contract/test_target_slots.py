"""Who may use a slot, and what one finds in it."""

import pytest

from service.errors import NoFreeSlot, OutriderError, UnknownSlot
from tests.contract.engines import SLOTS
from tests.contract.lanes import DrivenLane, assert_same_rows, next_rows, open_lane

PROMPT = (7, 3, 11)
LONG = (9,) * 12


def test_open_beyond_the_last_slot_is_refused(target) -> None:
    """Slots are as many as the limits say, each one once."""
    slots = [target.open() for _ in range(SLOTS)]

    assert SLOTS == len(set(slots)) == target.limits.max_slots
    with pytest.raises(NoFreeSlot):
        target.open()


def test_close_of_a_slot_lets_another_be_opened(target) -> None:
    """A closed slot's place is free again."""
    slots = [target.open() for _ in range(SLOTS)]

    target.close(slots[1])

    assert target.open() not in {slots[0], *slots[2:]}
    with pytest.raises(NoFreeSlot):
        target.open()


def test_slot_after_its_last_lane_is_clean(engine, target) -> None:
    """A reused place shows nothing of whoever had it before."""
    earlier = [open_lane(target, LONG, 5, 6, 7) for _ in range(SLOTS)]
    for lane in earlier:
        target.close(lane.slot)

    lane = open_lane(target, PROMPT, 21)

    assert len(PROMPT) == target.checkpoint(lane.slot)
    fresh = open_lane(engine.build(), PROMPT, 21)
    assert_same_rows(next_rows(fresh, 4, 4), next_rows(lane, 4, 4), engine.tolerance)


def test_open_slot_begins_empty(target) -> None:
    """Nothing is cached before the first chunk."""
    target.close(open_lane(target, LONG, 5).slot)

    assert 0 == target.checkpoint(target.open())


def test_close_in_the_middle_leaves_the_others_alone(target) -> None:
    """Lanes that stay keep their caches and their handles."""
    lanes = [open_lane(target, PROMPT, 21 + index) for index in range(SLOTS)]
    before = [next_rows(lane, 4, 4) for lane in lanes]

    target.close(lanes[0].slot)
    target.close(lanes[2].slot)

    assert before[1] == next_rows(lanes[1], 4, 4)
    assert before[3] == next_rows(lanes[3], 4, 4)


def test_abandoned_slots_never_come_back(target) -> None:
    """A slot whose contents are unknowable is lost for good."""
    slots = [target.open() for _ in range(SLOTS)]
    for slot in slots[:-1]:
        target.abandon(slot)
    target.close(slots[-1])

    again = target.open()

    assert again not in slots[:-1]
    with pytest.raises(NoFreeSlot):
        target.open()
    target.close(again)
    assert target.open() not in slots[:-1]


@pytest.mark.parametrize("leave", ["close", "abandon"])
def test_slot_that_was_given_up_is_unknown(target, leave) -> None:
    """A stale handle is recognised, and does no harm."""
    slot, lane = target.open(), open_lane(target, PROMPT, 21)
    getattr(target, leave)(slot)

    for call in (target.checkpoint, target.close, lambda slot: target.restore(slot, 0)):
        with pytest.raises(UnknownSlot):
            call(slot)
    assert len(PROMPT) == target.checkpoint(lane.slot)


def test_pass_with_a_stale_slot_is_refused_whole(target) -> None:
    """Nothing of a refused pass is cached."""
    lane, gone = open_lane(target, PROMPT, 21), DrivenLane(target, target.open(), PROMPT)
    chunk = gone.chunk(PROMPT)
    target.close(gone.slot)

    with pytest.raises(OutriderError):
        target.prefill([chunk])

    assert len(PROMPT) == target.checkpoint(lane.slot)
