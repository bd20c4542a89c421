"""Completions: exact, monotonic, kept, and bounded by two dispositions."""

import pytest

from service.errors import EngineError, NoFreeSlot, OutriderError
from service.speculation.completion import (
    BoundedWait,
    Completed,
    CompletionCancellation,
    DeadlineExceeded,
)
from service.speculation.contract import CommitResult
from tests.contract.engines import SLOTS
from tests.contract.lanes import commit, next_rows, open_lane, verify

PROMPT = (7, 3, 11)
LONG = 10.0
NATIVE = CompletionCancellation.NATIVE_CANCEL
QUARANTINE = CompletionCancellation.QUARANTINE_UNTIL_COMPLETE


def in_flight(slow, seconds: float = LONG):
    """Return a target with one lane, and its pass that takes so long."""
    target = slow.build(seconds)
    lane = open_lane(target, PROMPT, 21)
    return target, lane, target.submit([lane.inputs((4, 9))])


def test_completion_after_its_wait_stays_complete(target) -> None:
    lane = open_lane(target, PROMPT, 21)
    submission = target.submit([lane.inputs((4,))])

    submission.completion.wait()

    assert submission.completion.is_complete()
    submission.completion.wait()
    assert submission.completion.is_complete()


def test_completion_with_several_waiters_tells_each_once(target) -> None:
    lane = open_lane(target, PROMPT, 21)
    completion = target.submit([lane.inputs((4,))]).completion
    told = []
    completion.on_complete(lambda: told.append("first"))
    completion.on_complete(lambda: told.append("second"))

    completion.wait()
    completion.wait()

    completion.on_complete(lambda: told.append("late"))
    assert ["first", "late", "second"] == sorted(told)


def test_bounded_wait_for_a_pass_that_ends_is_completed(target) -> None:
    lane = open_lane(target, PROMPT, 21)
    submission = target.submit([lane.inputs((4,))])
    disposition = next(iter(target.limits.cancellations))

    outcome = submission.completion.wait_bounded(BoundedWait(60.0, disposition))

    assert Completed() == outcome
    assert 2 == len(lane.rows(submission.output, 0, 2))


def test_completion_covers_its_own_submission_only(target) -> None:
    """Waiting for the later pass leaves the earlier one's rows what they were."""
    first, second = open_lane(target, PROMPT, 21), open_lane(target, PROMPT, 22)
    expected = next_rows(first, 4), next_rows(second, 9)
    passes = [target.submit([first.inputs((4,))]), target.submit([second.inputs((9,))])]

    passes[1].completion.wait()
    passes[0].completion.wait()

    assert expected[0] == first.rows(passes[0].output, 0, 2)
    assert expected[1] == second.rows(passes[1].output, 0, 2)


def test_completion_of_running_work_is_monotonic(slow) -> None:
    """Asking never blocks; time alone completes."""
    target, _, submission = in_flight(slow)

    assert not submission.completion.is_complete()
    slow.pass_time(target, LONG - 1.0)
    assert not submission.completion.is_complete()
    slow.pass_time(target, 1.0)
    assert submission.completion.is_complete()
    assert submission.completion.is_complete()


def test_callback_of_running_work_comes_at_its_end(slow) -> None:
    target, _, submission = in_flight(slow)
    told = []
    submission.completion.on_complete(lambda: told.append("done"))

    slow.pass_time(target, LONG - 1.0)
    assert [] == told
    slow.pass_time(target, 2.0)

    assert submission.completion.is_complete()
    assert ["done"] == told


def test_completion_that_failed_keeps_its_error(slow) -> None:
    """Every waiter meets the same error, and nothing can be read or committed."""
    target = slow.failing(2)
    lane = open_lane(target, PROMPT, 21)
    submission = target.submit([lane.inputs((4,))])

    errors = []
    for _ in range(2):
        with pytest.raises(EngineError) as caught:
            submission.completion.wait()
        errors.append(caught.value)

    assert errors[0] is errors[1]
    assert submission.completion.is_complete()
    with pytest.raises(OutriderError):
        lane.rows(submission.output, 0, 1)
    (result,) = target.commit(submission.output, [lane.kept(1)])
    assert isinstance(result, OutriderError)


def test_lane_after_a_failed_pass_can_be_restored(slow) -> None:
    """A failure leaves the committed contents as they were."""
    target = slow.failing(2)
    lane = open_lane(target, PROMPT, 21)
    submission = target.submit([lane.inputs((4,))])
    with pytest.raises(EngineError):
        submission.completion.wait()
    submission.output.release()

    target.restore(lane.slot, lane.base)

    assert next_rows(open_lane(slow.build(1.0), PROMPT, 21), 4) == next_rows(lane, 4)


@pytest.mark.parametrize("disposition", CompletionCancellation)
def test_bounded_wait_beyond_its_deadline_applies_the_disposition(slow, disposition) -> None:
    target, lane, submission = in_flight(slow)
    if disposition not in target.limits.cancellations:
        pytest.skip("the engine does not offer it")

    outcome = submission.completion.wait_bounded(BoundedWait(1.0, disposition))

    assert DeadlineExceeded(disposition) == outcome
    with pytest.raises(OutriderError):
        lane.rows(submission.output, 0, 1)
    with pytest.raises(EngineError):
        submission.completion.wait_bounded(BoundedWait(1.0, disposition))


def test_native_cancel_has_ended_the_work(slow) -> None:
    """Nothing is written later, and the slot is free at once."""
    target, lane, submission = in_flight(slow)
    told = []
    submission.completion.on_complete(lambda: told.append("done"))
    submission.completion.wait_bounded(BoundedWait(1.0, NATIVE))

    assert submission.completion.is_complete()
    assert ["done"] == told
    target.close(lane.slot)
    slots = [target.open() for _ in range(SLOTS)]
    assert SLOTS == len(slots)


def test_native_cancel_lets_the_lane_go_on_from_its_checkpoint(slow) -> None:
    target, lane, submission = in_flight(slow)
    submission.completion.wait_bounded(BoundedWait(1.0, NATIVE))
    target.restore(lane.slot, lane.base)
    slow.pass_time(target, LONG)

    assert next_rows(open_lane(slow.build(1.0), PROMPT, 21), 4) == next_rows(lane, 4)


def test_quarantined_slot_is_not_reused_before_its_completion(slow) -> None:
    """A pass that timed out may still write: its slot waits for it, closed or not."""
    target, lane, submission = in_flight(slow)
    others = [target.open() for _ in range(SLOTS - 1)]
    submission.completion.wait_bounded(BoundedWait(1.0, QUARANTINE))
    submission.output.release()
    target.restore(lane.slot, lane.base)
    target.close(lane.slot)

    assert not submission.completion.is_complete()
    with pytest.raises(NoFreeSlot):
        target.open()
    slow.pass_time(target, LONG)

    assert submission.completion.is_complete()
    assert target.open() not in others


def test_slot_after_its_quarantine_is_clean(slow) -> None:
    """What the late pass wrote is not seen by whoever gets the slot next."""
    target, lane, submission = in_flight(slow)
    for _ in range(SLOTS - 1):
        target.open()
    submission.completion.wait_bounded(BoundedWait(1.0, QUARANTINE))
    submission.output.release()
    target.close(lane.slot)
    slow.pass_time(target, LONG)

    after = open_lane(target, PROMPT, 21)

    assert len(PROMPT) == target.checkpoint(after.slot)
    assert next_rows(open_lane(slow.build(1.0), PROMPT, 21), 4) == next_rows(after, 4)


def test_pass_beside_a_quarantined_one_is_unharmed(slow) -> None:
    """Other lanes go on, before and after the late pass writes."""
    target = slow.build(LONG)
    stuck, lane = open_lane(target, PROMPT, 21), open_lane(target, PROMPT, 22)
    expected = next_rows(lane, 4, 9)
    submission = target.submit([stuck.inputs((4, 9))])
    submission.completion.wait_bounded(BoundedWait(1.0, QUARANTINE))

    during = next_rows(lane, 4, 9)
    slow.pass_time(target, LONG)

    assert submission.completion.is_complete()
    assert expected == during == next_rows(lane, 4, 9)


def test_passes_that_end_out_of_order_keep_their_own_results(slow) -> None:
    """A pass submitted later may end first."""
    target = slow.build(1.0, 1.0, LONG, 1.0)
    first, second = open_lane(target, PROMPT, 21), open_lane(target, PROMPT, 22)
    slow_pass = target.submit([first.inputs((4,))])
    output = verify(target, (second, (9,))).output
    rows = second.rows(output, 0, 2)
    commit(target, output, second.kept(2))
    assert not slow_pass.completion.is_complete()

    slow_pass.completion.wait()

    (result,) = target.commit(slow_pass.output, [first.kept(2)])
    assert isinstance(result, CommitResult)
    fresh = slow.build(1.0)
    assert next_rows(open_lane(fresh, PROMPT, 22), 9) == rows
    assert len(PROMPT) + 2 == target.checkpoint(first.slot) == target.checkpoint(second.slot)
