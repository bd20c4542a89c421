"""What a slot's cache holds: exactly what was committed, and what was restored is gone."""

import pytest

from service.errors import OutriderError
from service.speculation.contract import CommitInput, CommitResult, Target
from tests.contract.engines import EngineCase
from tests.contract.lanes import (
    DrivenLane,
    assert_same_rows,
    commit,
    feed_prompt,
    next_rows,
    open_lane,
    verify,
)

PROMPT = (7, 3, 11, 3, 5)
BLOCK = (12, 4, 9, 17)


@pytest.mark.parametrize("inputs", [1, 2, 3, 4, 5])
def test_commit_of_a_prefix_keeps_exactly_its_inputs(engine, target, inputs) -> None:
    """Whatever part of a block is kept, what follows is as if nothing else had been fed."""
    lane = open_lane(target, PROMPT, 21)
    submission = verify(target, (lane, BLOCK))
    commit(target, submission.output, lane.kept(inputs))
    assert lane.base + inputs == target.checkpoint(lane.slot)
    lane.generated = (21, *BLOCK[: inputs - 1], 30)

    only_kept = open_lane(target, PROMPT, *lane.generated)

    assert_same_rows(next_rows(only_kept, 8, 2), next_rows(lane, 8, 2), engine.tolerance)


def test_rounds_after_partial_commits_see_no_rejected_input(engine, target) -> None:
    """Rejected inputs of many rounds leave no trace."""
    lane = open_lane(target, PROMPT, 21)
    for kept, tail in ((1, 2), (3, 6), (2, 13), (5, 1), (1, 14)):
        submission = verify(target, (lane, BLOCK))
        commit(target, submission.output, lane.kept(kept))
        lane.generated = (*lane.generated, *BLOCK[: kept - 1], tail)

    only_kept = open_lane(target, PROMPT, *lane.generated)

    assert_same_rows(next_rows(only_kept, 8, 2), next_rows(lane, 8, 2), engine.tolerance)


def test_restore_after_a_pass_gives_the_same_rows_again(target) -> None:
    """A restored slot repeats a pass bit for bit, whatever was fed in between."""
    lane = open_lane(target, PROMPT, 21)

    before = next_rows(lane, *BLOCK)
    next_rows(lane, 1, 1, 1, 1, 1, 1)

    assert before == next_rows(lane, *BLOCK)
    assert len(PROMPT) == target.checkpoint(lane.slot)


def test_restore_after_a_commit_takes_the_commit_back(target) -> None:
    """A failed publication restores a slot whose inputs were committed already."""
    lane = open_lane(target, PROMPT, 21)
    before = next_rows(lane, *BLOCK)
    submission = verify(target, (lane, BLOCK))
    commit(target, submission.output, lane.kept(3))

    target.restore(lane.slot, lane.base)

    assert lane.base == target.checkpoint(lane.slot)
    assert before == next_rows(lane, *BLOCK)


def test_restore_into_a_prompt_allows_another_ending(engine, target) -> None:
    """A boundary inside the prompt is a boundary like any other."""
    lane = open_lane(target, PROMPT, 21)
    target.restore(lane.slot, 2)
    other = DrivenLane(target, lane.slot, (*PROMPT[:2], 19, 18))
    submission = target.prefill([other.chunk((19, 18))])
    submission.completion.wait()
    rows = other.rows(submission.output, 0, 1)
    commit(target, submission.output, other.kept(2))

    fresh = DrivenLane(target, target.open(), other.prompt)

    assert_same_rows([feed_prompt(fresh)], rows, engine.tolerance)


@pytest.mark.parametrize("chunk", [1, 2, 3, 4])
def test_prefill_in_chunks_equals_the_whole(engine, target, chunk) -> None:
    """The cache after a prompt does not depend on how it was cut."""
    whole = DrivenLane(target, target.open(), PROMPT, (21,))
    chunked = DrivenLane(target, target.open(), PROMPT, (21,))

    rows = [feed_prompt(whole)], [feed_prompt(chunked, chunk)]

    assert_same_rows(*rows, engine.tolerance)
    assert len(PROMPT) == target.checkpoint(chunked.slot)
    assert_same_rows(next_rows(whole, *BLOCK), next_rows(chunked, *BLOCK), engine.tolerance)


def test_prefill_row_equals_the_row_of_verified_inputs(engine, target) -> None:
    """A token gives the same row as a prompt's last and as a leading input."""
    prefilled = DrivenLane(target, target.open(), (*PROMPT, 21))
    verified = open_lane(target, PROMPT, 21)

    assert_same_rows([feed_prompt(prefilled)], next_rows(verified), engine.tolerance)


def test_commit_of_impossible_inputs_is_that_lanes_error(engine: EngineCase, target: Target):
    """One lane's commit that cannot be leaves the others' as they are."""
    lanes = [open_lane(target, PROMPT, 21), open_lane(target, PROMPT, 22)]
    output = verify(target, (lanes[0], BLOCK), (lanes[1], BLOCK)).output

    refused, kept = target.commit(output, [lanes[0].kept(6, 0), lanes[1].kept(2, 1)])
    output.release()

    assert isinstance(refused, OutriderError)
    assert isinstance(kept, CommitResult)
    assert lanes[1].base + 2 == target.checkpoint(lanes[1].slot)
    target.restore(lanes[0].slot, lanes[0].base)
    fresh = open_lane(target, PROMPT, 21)
    assert_same_rows(next_rows(fresh, 8), next_rows(lanes[0], 8), engine.tolerance)


def test_commit_of_a_slot_outside_the_pass_is_that_lanes_error(target: Target) -> None:
    """A commit names the lane's place in the pass, and the two must agree."""
    inside, outside = open_lane(target, PROMPT, 21), open_lane(target, PROMPT, 22)
    output = verify(target, (inside, BLOCK)).output

    wrong = CommitInput(0, outside.slot, outside.base, 1)
    (result,) = target.commit(output, [wrong])
    output.release()

    assert isinstance(result, OutriderError)
    assert len(PROMPT) == target.checkpoint(outside.slot)
