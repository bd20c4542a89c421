"""Lanes of one pass, and of passes between each other, know nothing of one another."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from service.errors import OutriderError
from service.speculation.contract import Target, Tokens
from tests.contract.lanes import (
    DrivenLane,
    Row,
    assert_same_rows,
    commit,
    next_rows,
    open_lane,
    verify,
)

PROMPTS: tuple[Tokens, ...] = ((7, 3, 11), (5,), (2, 2, 2, 2, 2, 2, 9), (1, 30, 6, 4))
BLOCKS: tuple[Tokens, ...] = ((12, 4, 9, 17), (), (8,), (3, 3, 3, 3, 3, 3, 3))


def test_pass_of_ragged_widths_equals_each_lane_alone(engine, target) -> None:
    """Plain lanes and blocks of any width share a pass."""
    lanes = [open_lane(target, prompt, 21) for prompt in PROMPTS]
    alone = [next_rows(lane, *block) for lane, block in zip(lanes, BLOCKS, strict=True)]

    submission = verify(target, *zip(lanes, BLOCKS, strict=True))

    for index, (lane, block) in enumerate(zip(lanes, BLOCKS, strict=True)):
        rows = lane.rows(submission.output, index, 1 + len(block))
        assert_same_rows(alone[index], rows, engine.tolerance)


def test_lanes_in_another_order_have_the_same_rows(engine, target) -> None:
    """A lane's place in the pass is not part of its result."""
    lanes = [open_lane(target, prompt, 21) for prompt in PROMPTS]
    alone = [next_rows(lane, *block) for lane, block in zip(lanes, BLOCKS, strict=True)]
    order = [2, 0, 3, 1]

    submission = verify(target, *((lanes[index], BLOCKS[index]) for index in order))

    for place, index in enumerate(order):
        rows = lanes[index].rows(submission.output, place, 1 + len(BLOCKS[index]))
        assert_same_rows(alone[index], rows, engine.tolerance)


def test_rows_are_readable_in_any_order_and_twice(target) -> None:
    """Reading is not consuming."""
    lanes = [open_lane(target, prompt, 21) for prompt in PROMPTS[:2]]
    output = verify(target, (lanes[0], (4, 5)), (lanes[1], ())).output

    first = lanes[0].rows(output, 0, 3)
    lanes[1].rows(output, 1, 1)

    assert first == lanes[0].rows(output, 0, 3)


def test_prompts_in_one_pass_equal_each_alone(engine, target) -> None:
    """Chunks of different lengths, of which some are not the last, share a pass."""
    lanes = [DrivenLane(target, target.open(), prompt) for prompt in PROMPTS]
    submission = target.prefill(
        [
            lanes[0].chunk(PROMPTS[0]),
            lanes[1].chunk(PROMPTS[1]),
            lanes[2].chunk(PROMPTS[2][:4], is_last=False),
        ]
    )
    submission.completion.wait()
    rows = [*lanes[0].rows(submission.output, 0, 1), *lanes[1].rows(submission.output, 1, 1)]
    with pytest.raises(OutriderError):
        lanes[2].rows(submission.output, 2, 1)
    commits = (lanes[0].kept(3, 0), lanes[1].kept(1, 1), lanes[2].kept(4, 2))
    commit(target, submission.output, *commits)
    submission = target.prefill([lanes[2].chunk(PROMPTS[2][4:])])
    submission.completion.wait()
    rows += lanes[2].rows(submission.output, 0, 1)

    assert_same_rows(rows, [_prompt_row(engine.build(), p) for p in PROMPTS[:3]], engine.tolerance)


def _prompt_row(target: Target, prompt: Tokens) -> Row:
    lane = DrivenLane(target, target.open(), prompt)
    submission = target.prefill([lane.chunk(prompt)])
    submission.completion.wait()
    (row,) = lane.rows(submission.output, 0, 1)
    commit(target, submission.output, lane.kept(len(prompt)))
    target.close(lane.slot)
    return row


Step = tuple[int, list[Row]]


def _life(target: Target, prompt: Tokens, seed: int) -> Iterator[tuple[DrivenLane, Tokens, int]]:
    """Play one lane's rounds: yield what to verify, and how many inputs to keep of it."""
    choices = random.Random(seed)
    lane = open_lane(target, prompt, 21)
    for _ in range(5):
        block = tuple(choices.randrange(1, 31) for _ in range(choices.randrange(5)))
        kept = choices.randrange(1, 2 + len(block))
        yield lane, block, kept
        lane.generated = (*lane.generated, *block[: kept - 1], choices.randrange(1, 31))
    target.close(lane.slot)


def _rows_alone(target: Target, prompt: Tokens, seed: int) -> list[list[Row]]:
    rows = []
    for lane, block, kept in _life(target, prompt, seed):
        output = verify(target, (lane, block)).output
        rows.append(lane.rows(output, 0, 1 + len(block)))
        commit(target, output, lane.kept(kept))
    return rows


def _rows_together(target: Target, order: random.Random) -> dict[int, list[list[Row]]]:
    """Play all lanes at once: passes of a random few of them, in random order."""
    lives = {seed: _life(target, prompt, seed) for seed, prompt in enumerate(PROMPTS)}
    rows: dict[int, list[list[Row]]] = {seed: [] for seed in lives}
    while lives:
        chosen = order.sample(sorted(lives), order.randrange(1, len(lives) + 1))
        turns = [(seed, turn) for seed in chosen if (turn := next(lives[seed], None))]
        for seed in set(chosen) - {seed for seed, _ in turns}:
            del lives[seed]
        if not turns:
            continue
        output = verify(target, *((lane, block) for _, (lane, block, _) in turns)).output
        for index, (seed, (lane, block, _)) in enumerate(turns):
            rows[seed].append(lane.rows(output, index, 1 + len(block)))
        commits = [lane.kept(kept, i) for i, (_, (lane, _, kept)) in enumerate(turns)]
        commit(target, output, *commits)
    return rows


@pytest.mark.parametrize("seed", range(6))
def test_lanes_under_any_order_of_calls_do_not_leak(engine, target, seed) -> None:
    """Lanes that come, go and share passes at random see what they would see alone."""
    alone = [_rows_alone(engine.build(), prompt, life) for life, prompt in enumerate(PROMPTS)]

    together = _rows_together(target, random.Random(seed))

    for life, rounds in enumerate(alone):
        assert len(rounds) == len(together[life])
        for expected, actual in zip(rounds, together[life], strict=True):
            assert_same_rows(expected, actual, engine.tolerance)
