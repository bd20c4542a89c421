"""What exceeds an engine's limits is refused by a typed error, before it changes anything."""

import pytest

from service.errors import OutriderError
from service.speculation.completion import CompletionCancellation
from tests.contract.engines import CONTEXT, PASS_LANES, PASS_ROWS, SLOTS
from tests.contract.lanes import (
    DrivenLane,
    assert_same_rows,
    commit,
    next_rows,
    open_lane,
    verify,
)

PROMPT = (7, 3, 11)


def test_limits_are_those_that_the_engine_was_made_with(target) -> None:
    limits = target.limits

    assert (SLOTS, CONTEXT) == (limits.max_slots, limits.max_context)
    assert (PASS_LANES, PASS_ROWS) == (limits.max_pass_lanes, limits.max_pass_rows)
    assert limits.vocabulary_size > max(PROMPT)
    assert limits.cancellations <= frozenset(CompletionCancellation)


def test_limits_name_a_disposition_for_late_passes(target) -> None:
    """Without any, no scheduler could run the engine."""
    assert target.limits.cancellations


def test_pass_at_its_limit_of_rows_is_served(engine, target) -> None:
    """Every row that the limits admit is computed."""
    lanes = [open_lane(target, PROMPT, 21) for _ in range(PASS_LANES)]
    width = PASS_ROWS // PASS_LANES - 1
    block = tuple(1 + index % 30 for index in range(width))
    alone = next_rows(lanes[0], *block)

    submission = verify(target, *((lane, block) for lane in lanes))

    for index, lane in enumerate(lanes):
        rows = lane.rows(submission.output, index, 1 + width)
        assert_same_rows(alone, rows, engine.tolerance)


def test_pass_wider_than_its_limit_is_refused(target) -> None:
    """Padded rows count: one wide lane among narrow ones is as wide as all."""
    wide, narrow = open_lane(target, PROMPT, 21), open_lane(target, PROMPT, 22)

    with pytest.raises(OutriderError):
        verify(target, (wide, (5,) * (PASS_ROWS // 2)), (narrow, ()))

    assert len(PROMPT) == target.checkpoint(wide.slot) == target.checkpoint(narrow.slot)
    next_rows(wide, 5)


def test_prompt_chunk_wider_than_the_limit_is_refused(target) -> None:
    lane = DrivenLane(target, target.open(), (5,) * (PASS_ROWS + 1))

    with pytest.raises(OutriderError):
        target.prefill([lane.chunk(lane.prompt)])

    assert 0 == target.checkpoint(lane.slot)


def test_inputs_beyond_the_context_are_refused(target) -> None:
    """A lane may fill its context to the last place, and no further."""
    lane = open_lane(target, (5,) * (CONTEXT - 34), 21)
    submission = verify(target, (lane, (6,) * 31))
    commit(target, submission.output, lane.kept(32))

    with pytest.raises(OutriderError):
        verify(target, (lane, (8, 8)))

    assert CONTEXT - 2 == target.checkpoint(lane.slot)
    assert 2 == len(next_rows(lane, 8))


def test_prompt_as_long_as_the_context_is_served(target) -> None:
    lane = DrivenLane(target, target.open(), (5, 6) * (CONTEXT // 2))
    for start in range(0, CONTEXT, 32):
        submission = target.prefill(
            [lane.chunk(lane.prompt[start : start + 32], is_last=start + 32 == CONTEXT)]
        )
        submission.completion.wait()
        commit(target, submission.output, lane.kept(32))

    assert CONTEXT == target.checkpoint(lane.slot)


@pytest.mark.parametrize("checkpoint", [4, -1])
def test_restore_to_a_boundary_that_was_not_passed_is_refused(target, checkpoint) -> None:
    """Restoring only ever shortens."""
    lane = open_lane(target, PROMPT, 21)

    with pytest.raises(OutriderError):
        target.restore(lane.slot, checkpoint)

    assert len(PROMPT) == target.checkpoint(lane.slot)
