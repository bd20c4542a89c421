"""Rows as distributions, and when they may be read."""

import math
from dataclasses import replace

import pytest

from service.errors import OutriderError
from tests.contract.lanes import DrivenLane, next_rows, open_lane, verify
from tests.neutral import SAMPLED

PROMPT = (7, 3, 11)
GREEDY = replace(SAMPLED, do_sample=False, temperature=0.0)
DRAWS = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0 - 2.0**-53)


def distributions(lane: DrivenLane, *proposals: int):
    """Return the distributions of a round."""
    output = verify(lane.target, (lane, proposals)).output
    rows = output.rows(0)
    return [rows.distribution(row, lane.sampler) for row in range(1 + len(proposals))]


def argmax(row) -> int:
    return max(range(len(row)), key=lambda token: (row[token], -token))


def test_rows_sum_to_one(target) -> None:
    for row in next_rows(open_lane(target, PROMPT, 21), 4, 9, 1):
        assert math.fsum(row) == pytest.approx(1.0, abs=1e-5)
        assert all(probability >= 0.0 for probability in row)


def test_rows_of_different_histories_differ(target) -> None:
    """The engine looks at what it was fed: a suite over constant rows would prove nothing."""
    lane = open_lane(target, PROMPT, 21)

    rows = next_rows(lane, 4, 9) + next_rows(lane, 5, 9)

    assert rows[0] == rows[3]
    assert 5 == len(set(rows))


def test_sample_without_a_draw_is_the_lowest_of_the_likeliest(target) -> None:
    lane = open_lane(target, PROMPT, 21)
    rows = next_rows(lane, 4, 9)

    assert [argmax(row) for row in rows] == [d.sample(None) for d in distributions(lane, 4, 9)]


def test_greedy_row_is_certain_of_the_sampled_rows_likeliest(target) -> None:
    """Greedy rows are one-hot, so that acceptance compares tokens and nothing else."""
    lane = open_lane(target, PROMPT, 21)
    likeliest = [argmax(row) for row in next_rows(lane, 4, 9)]

    lane.config = GREEDY

    for token, row in zip(likeliest, next_rows(lane, 4, 9), strict=True):
        assert 1.0 == row[token] == math.fsum(row)


def test_sample_with_a_draw_has_probability(target) -> None:
    """No draw in [0, 1) reaches a token that cannot come."""
    (row,) = distributions(open_lane(target, PROMPT, 21))

    assert all(row.probability(row.sample(draw)) > 0.0 for draw in DRAWS)


def test_sample_over_all_draws_follows_the_probabilities(target) -> None:
    """Equally spaced draws meet each token as often as its probability says."""
    (row,) = distributions(open_lane(target, PROMPT, 21))
    number = 2000

    tokens = [row.sample((index + 0.5) / number) for index in range(number)]

    for token in set(tokens):
        assert tokens.count(token) / number == pytest.approx(row.probability(token), abs=2e-3)


def test_excess_over_itself_is_nothing(target) -> None:
    (row,) = distributions(open_lane(target, PROMPT, 21))

    assert row.excess_over(row) is None


def test_excess_over_a_certain_draft_is_the_rest(target) -> None:
    """A rejected proposal of a one-hot draft cannot be its own replacement."""
    lane = open_lane(target, PROMPT, 21)
    (row,) = distributions(lane)
    target.restore(lane.slot, lane.base)
    lane.config = GREEDY
    (draft,) = distributions(lane)
    token = draft.sample(None)

    excess = row.excess_over(draft)

    assert 0.0 == excess.probability(token)
    vocabulary = range(target.limits.vocabulary_size)
    assert math.fsum(map(excess.probability, vocabulary)) == pytest.approx(1.0, abs=1e-5)
    assert token not in {excess.sample(draw) for draw in DRAWS}


def test_sampler_that_was_advanced_gives_the_same_row(target) -> None:
    """Without a state that follows tokens, advancing changes nothing."""
    lane = open_lane(target, PROMPT, 21)
    output = verify(target, (lane, (4,))).output
    rows, sampler = output.rows(0), lane.sampler
    first = rows.distribution(0, sampler)

    advanced = sampler.advance(first, 4)

    plain, moved = rows.distribution(1, sampler), rows.distribution(1, advanced)
    vocabulary = range(target.limits.vocabulary_size)
    assert [plain.probability(t) for t in vocabulary] == [moved.probability(t) for t in vocabulary]


def test_output_before_the_wait_is_unreadable(engine, target) -> None:
    """Nobody reads a buffer that the engine may still write."""
    if not engine.has_work_in_flight:
        pytest.skip("there is nothing to wait for")
    lane = open_lane(target, PROMPT, 21)
    submission = target.submit([lane.inputs((4,))])

    with pytest.raises(OutriderError):
        lane.rows(submission.output, 0, 1)


def test_output_after_the_release_is_unreadable(target) -> None:
    lane = open_lane(target, PROMPT, 21)
    output = verify(target, (lane, (4,))).output

    output.release()

    with pytest.raises(OutriderError):
        lane.rows(output, 0, 1)


def test_release_twice_does_no_more(target) -> None:
    """Whoever gives a pass back a second time takes nothing from the next one."""
    lane, other = open_lane(target, PROMPT, 21), open_lane(target, PROMPT, 22)
    first = verify(target, (lane, (4,))).output
    first.release()
    before = next_rows(other, 9)
    second = verify(target, (other, (9,))).output

    first.release()

    assert before == other.rows(second, 0, 2)


@pytest.mark.parametrize(("row", "lane"), [(2, 0), (-1, 0), (0, 1)])
def test_row_that_was_not_computed_is_refused(target, row, lane) -> None:
    driven = open_lane(target, PROMPT, 21)
    output = verify(target, (driven, (4,))).output

    with pytest.raises(OutriderError):
        output.rows(lane).distribution(row, driven.sampler)
