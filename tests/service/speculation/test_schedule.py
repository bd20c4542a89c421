import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import StalledSchedule
from service.speculation.lifecycle import RequestStatus
from service.speculation.options import SchedulerOptions
from service.speculation.schedule import (
    Candidate,
    Draft,
    DraftOptimistic,
    PassShape,
    Prefill,
    Resolve,
    Schedule,
    Verify,
    Wait,
)

DRAFTED = Candidate(RequestStatus.READY_TO_SUBMIT_VERIFICATION)
READY = Candidate(RequestStatus.READY_TO_DRAFT)
DONE = Candidate(RequestStatus.COMPLETED)
PREFILLING = Candidate(RequestStatus.PREFILL, rows=8)


def flying(pass_id=1, *, ended=False, ahead=False, proposer=None):
    return Candidate(
        RequestStatus.TARGET_VERIFICATION_IN_FLIGHT,
        proposer=proposer,
        may_draft_ahead=ahead,
        pass_id=pass_id,
        pass_ended=ended,
    )


def one_lane_schedule(options=None):
    return Schedule(options or SchedulerOptions(), PassShape(1, 16), can_overlap=True)


def many_lane_schedule(lanes=8, rows=128, *, can_overlap=False, **options):
    return Schedule(SchedulerOptions(**options), PassShape(lanes, rows), can_overlap=can_overlap)


def test_one_lane_schedule_is_fair_and_respects_retained_capacity():
    schedule = one_lane_schedule()
    assert schedule.next_action([DRAFTED, DRAFTED]) == Verify((0,))
    assert schedule.next_action([DRAFTED, DRAFTED]) == Verify((1,))
    action = schedule.next_action([flying(ended=True), DRAFTED, READY])
    assert action == Draft((2,), cross_request=True)


def test_one_lane_schedule_submits_what_is_drafted_before_drafting_more():
    assert one_lane_schedule().next_action([READY, DRAFTED]) == Verify((1,))


def test_schedule_resolves_ended_passes_and_waits_for_the_others():
    schedule = one_lane_schedule()
    assert schedule.next_action([flying(ended=True), DRAFTED]) == Resolve(1)
    assert schedule.next_action([flying(), DRAFTED]) == Wait()


def test_schedule_resolves_the_oldest_of_several_ended_passes():
    schedule = many_lane_schedule(max_in_flight_verifications=2)
    assert schedule.next_action([flying(2, ended=True), flying(1, ended=True)]) == Resolve(1)
    assert schedule.next_action([flying(2, ended=True), flying(1)]) == Resolve(2)


def test_schedule_is_idle_when_every_lane_is_terminal():
    assert one_lane_schedule().next_action([DONE, DONE]) is None
    assert one_lane_schedule().next_action([]) is None


def test_lookahead_goes_before_other_drafts_and_within_its_bound():
    schedule = one_lane_schedule()
    assert schedule.next_action([flying(ahead=True), READY]) == DraftOptimistic((0,))
    branched = Candidate(RequestStatus.OPTIMISTIC_DRAFT_READY, pass_id=2)
    schedule = many_lane_schedule(max_in_flight_verifications=2)
    assert schedule.next_action([branched, flying(ahead=True), READY]) == Draft(
        (2,), cross_request=True
    )
    off = one_lane_schedule(SchedulerOptions().with_lookahead(enabled=False))
    assert off.next_action([flying(ahead=True)]) == Wait()


def test_lookahead_takes_all_lanes_of_one_pass_that_share_a_proposer():
    schedule = many_lane_schedule(max_in_flight_verifications=2)
    candidates = [
        flying(1, ahead=True, proposer=7),
        flying(2, ahead=True, proposer=7),
        flying(1, ahead=True, proposer=7),
        flying(1, ahead=True, proposer=8),
    ]
    assert schedule.next_action(candidates) == DraftOptimistic((0, 2))


def test_one_queue_drafts_every_ready_lane_before_it_submits():
    schedule = many_lane_schedule()
    assert schedule.next_action([DRAFTED, READY, READY]) == Draft((1, 2), cross_request=False)
    assert schedule.next_action([DRAFTED, DRAFTED, DRAFTED]) == Verify((0, 1, 2))


def test_split_queues_submit_when_the_target_idles():
    schedule = many_lane_schedule(can_overlap=True)
    assert schedule.next_action([DRAFTED, READY]) == Verify((0,))


def test_split_queues_merge_drifted_groups_within_the_stated_passes():
    """Two groups that alternate meet again after `merge_after_passes` partial passes."""
    schedule = many_lane_schedule(can_overlap=True, merge_after_passes=3)
    for _ in range(3):
        assert schedule.next_action([DRAFTED, READY]) == Verify((0,))
    assert schedule.next_action([DRAFTED, READY]) == Draft((1,), cross_request=False)
    assert schedule.next_action([DRAFTED, DRAFTED]) == Verify((0, 1))
    assert schedule.next_action([DRAFTED, READY]) == Verify((0,))


def test_draft_pass_has_one_proposer_and_plain_lanes_join_it():
    schedule = many_lane_schedule()
    first = Candidate(RequestStatus.READY_TO_DRAFT, proposer=1)
    second = Candidate(RequestStatus.READY_TO_DRAFT, proposer=2)
    candidates = [first, second, READY, first]
    assert schedule.next_action(candidates) == Draft((0, 2, 3), cross_request=False)


def test_prefill_and_verification_take_turns():
    schedule = many_lane_schedule()
    assert schedule.next_action([PREFILLING, DRAFTED]) == Prefill((0,))
    assert schedule.next_action([PREFILLING, DRAFTED]) == Verify((1,))
    assert schedule.next_action([PREFILLING, DRAFTED]) == Prefill((0,))
    assert schedule.next_action([PREFILLING, READY]) == Draft((1,), cross_request=False)
    assert schedule.next_action([PREFILLING, DRAFTED]) == Verify((1,))


def test_prefill_keeps_within_its_token_budget():
    schedule = many_lane_schedule(prefill_chunk_tokens=20)
    assert schedule.next_action([PREFILLING, PREFILLING, PREFILLING]) == Prefill((0, 1))
    assert schedule.next_action([PREFILLING, PREFILLING, PREFILLING]) == Prefill((2, 0))


def test_lanes_left_out_of_a_full_pass_come_first_in_the_next():
    schedule = many_lane_schedule(lanes=2)
    assert schedule.next_action([DRAFTED] * 3) == Verify((0, 1))
    assert schedule.next_action([DRAFTED] * 3) == Verify((2, 0))


def test_lane_that_waited_longest_comes_first_whatever_joined_meanwhile():
    schedule = many_lane_schedule(lanes=1)
    newer = Candidate(RequestStatus.READY_TO_SUBMIT_VERIFICATION, since=7)
    older = Candidate(RequestStatus.READY_TO_SUBMIT_VERIFICATION, since=3)
    assert schedule.next_action([newer, older, newer]) == Verify((1,))
    assert schedule.next_action([newer, newer, older]) == Verify((2,))


def test_schedule_without_any_legal_action_says_so():
    stuck = Candidate(RequestStatus.VERIFICATION_RESOLUTION)
    with pytest.raises(StalledSchedule):
        one_lane_schedule().next_action([stuck])


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=12),
    st.integers(1, 8),
    st.integers(1, 64),
)
def test_pack_never_exceeds_lanes_or_padded_rows_unless_one_lane_does(rows, lanes, capacity):
    chosen = PassShape(lanes, capacity).pack(range(len(rows)), rows)
    assert chosen
    assert chosen[0] == 0
    assert len(set(chosen)) == len(chosen) <= lanes
    padded = len(chosen) * max(rows[index] for index in chosen)
    assert padded <= capacity or len(chosen) == 1


@given(st.integers(2, 12), st.integers(1, 4), st.integers(8, 32))
def test_no_drafted_lane_waits_longer_than_one_cycle(count, lanes, capacity):
    """Round robin: every lane is verified within as many passes as there are lanes."""
    schedule = many_lane_schedule(lanes=lanes, rows=capacity)
    waiting = [
        Candidate(RequestStatus.READY_TO_SUBMIT_VERIFICATION, rows=1 + index % 8)
        for index in range(count)
    ]
    served = set()
    for _ in range(count):
        served.update(schedule.next_action(waiting).lanes)
    assert served == set(range(count))
