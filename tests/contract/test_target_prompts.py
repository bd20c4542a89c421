"""Rows after every token of a prompt, for the prompt's own log-probabilities."""

import pytest

from service.errors import OutriderError
from service.speculation.contract import Target, Tokens
from tests.contract.lanes import (
    DrivenLane,
    Row,
    assert_same_rows,
    commit,
    feed_prompt,
    next_rows,
    open_lane,
    verify,
)

PROMPT = (7, 3, 11, 3, 5, 21, 2)


def fed(target: Target, prompt: Tokens) -> Row:
    """Return the row after a prompt that was fed alone."""
    lane = DrivenLane(target, target.open(), prompt)
    row = feed_prompt(lane)
    target.close(lane.slot)
    return row


def every_row(lane: DrivenLane, *sizes: int) -> list[Row]:
    """Feed a lane's prompt in chunks of these sizes; return the rows after each token."""
    rows, start = [], 0
    for size in sizes:
        end = start + size
        chunk = lane.chunk(lane.prompt[start:end], is_last=end == len(lane.prompt), every_row=True)
        submission = lane.target.prefill([chunk])
        submission.completion.wait()
        rows += lane.rows(submission.output, 0, size)
        commit(lane.target, submission.output, lane.kept(size))
        start = end
    return rows


@pytest.mark.parametrize("sizes", [(7,), (3, 4), (1, 1, 5), (6, 1)])
def test_every_row_of_a_prompt_is_that_of_a_shorter_prompt(engine, target, sizes) -> None:
    """However the prompt is cut, and on chunks that are not the last too."""
    lane = DrivenLane(target, target.open(), PROMPT)
    expected = [fed(target, PROMPT[: length + 1]) for length in range(len(PROMPT))]

    rows = every_row(lane, *sizes)

    assert_same_rows(expected, rows, engine.tolerance)
    lane.generated = (21,)
    other = open_lane(target, PROMPT, 21)
    assert_same_rows(next_rows(other, 4, 4), next_rows(lane, 4, 4), engine.tolerance)


def test_every_row_of_one_lane_leaves_the_others_theirs(engine, target) -> None:
    """Chunks with one row, with all and with none share a pass."""
    lanes = [DrivenLane(target, target.open(), PROMPT[:length]) for length in (7, 4, 5)]
    submission = target.prefill(
        [
            lanes[0].chunk(lanes[0].prompt, every_row=True),
            lanes[1].chunk(lanes[1].prompt),
            lanes[2].chunk(lanes[2].prompt[:3], is_last=False),
        ]
    )
    submission.completion.wait()

    rows = lanes[0].rows(submission.output, 0, 7) + lanes[1].rows(submission.output, 1, 1)

    with pytest.raises(OutriderError):
        lanes[2].rows(submission.output, 2, 1)
    commit(target, submission.output, *(lanes[i].kept(n, i) for i, n in enumerate((7, 4, 3))))
    target.close(lanes[0].slot)
    expected = [fed(target, PROMPT[: length + 1]) for length in range(7)]
    assert_same_rows([*expected, expected[3]], rows, engine.tolerance)


@pytest.mark.parametrize("row", [-1, len(PROMPT)])
def test_row_beyond_the_chunk_is_refused(target, row) -> None:
    lane = DrivenLane(target, target.open(), PROMPT)
    submission = target.prefill([lane.chunk(PROMPT, every_row=True)])
    submission.completion.wait()

    with pytest.raises(OutriderError):
        submission.output.rows(0).raw_logprob(row, 3, 1)


def test_raw_logprobs_of_a_prompt_do_not_depend_on_its_chunks(engine, target) -> None:
    """Nor on what the request's settings make of the rows."""
    whole, cut = ([], [])
    for found, sizes in ((whole, (7,)), (cut, (2, 5))):
        lane = DrivenLane(target, target.open(), PROMPT, vocabulary=30)
        start = 0
        for size in sizes:
            tokens = PROMPT[start : start + size]
            start += size
            chunk = lane.chunk(tokens, is_last=start == len(PROMPT), every_row=True)
            submission = target.prefill([chunk])
            submission.completion.wait()
            rows = submission.output.rows(0)
            found += [rows.raw_logprob(row, 21, 3) for row in range(size)]
            commit(target, submission.output, lane.kept(size))

    for one, other in zip(whole, cut, strict=True):
        assert one.logprob == pytest.approx(other.logprob, abs=engine.tolerance)
        assert [t for t, _ in one.alternatives] == [t for t, _ in other.alternatives]


def test_prompt_rows_and_verification_rows_agree(engine, target) -> None:
    """A text is scored alike as a prompt and as an output."""
    prompted = every_row(DrivenLane(target, target.open(), PROMPT), 7)
    lane = open_lane(target, PROMPT[:3], PROMPT[3])

    output = verify(target, (lane, PROMPT[4:])).output

    assert_same_rows(prompted[3:], lane.rows(output, 0, 4), engine.tolerance)
