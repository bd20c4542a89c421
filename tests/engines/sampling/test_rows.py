"""The rows of a pass: whose they are, and at which history each is processed."""

import math
from dataclasses import replace

import numpy as np
import pytest

from engines.sampling.one_hot import OneHot
from engines.sampling.penalties import Penalties
from engines.sampling.row_sampler import RowSampler
from engines.sampling.rows import LaneSpan, process, rows_of
from engines.scripted.sampling import ScriptedSampler
from service.errors import InvalidLogits, NothingAllowed
from service.generation.config import GenerationOverrides, resolve_generation_config
from service.speculation.contract import History, SamplingInput
from tests.contract.constraints import Stripes
from tests.contract.lanes import SAMPLED as SAMPLED_CONFIG
from tests.engines.sampling.watched import Watched

GREEDY_CONFIG = replace(SAMPLED_CONFIG, do_sample=False, temperature=0.0)
GREEDY = RowSampler()
SAMPLED = RowSampler(temperature=1.0)
FREQUENCY = RowSampler(adjustments=(Penalties(frequency=1.0, last_n=-1),))
HISTORY = History((5, 6), (3,))


def logits(*rows) -> np.ndarray:
    return np.array(rows, np.float32)


def test_rows_of_a_pass_belong_to_their_lanes() -> None:
    spans = [LaneSpan(1, GREEDY, HISTORY, (0,)), LaneSpan(0, GREEDY, HISTORY)]

    first, second = rows_of(spans, logits([9, 0, 0], [0, 9, 0], [0, 0, 9]))

    assert [OneHot(1), OneHot(2)] == [first.distribution(row, GREEDY) for row in (0, 1)]
    assert OneHot(0) == second.distribution(0, GREEDY)


@pytest.mark.parametrize("other", [GREEDY, SAMPLED])
def test_greedy_rows_are_the_same_beside_any_lane(other) -> None:
    """Ties go to the lowest id whether one argmax decides the pass or each row its own."""
    spans = [LaneSpan(0, GREEDY, HISTORY, (2, 1)), LaneSpan(3, other, HISTORY)]
    values = np.random.default_rng(0).integers(0, 3, (4, 50)).astype(np.float32)

    rows = rows_of(spans, values)[0]

    expected = [OneHot(int(np.flatnonzero(row == row.max())[0])) for row in values[:3]]
    assert expected == [rows.distribution(row, GREEDY) for row in range(3)]


def test_row_sees_the_proposals_before_it_and_no_others() -> None:
    """B26: every position of a block counts what precedes it, drafts included."""
    values = logits(*[[1.0, 1.5, 1.8, 0.0]] * 4)
    span = LaneSpan(0, FREQUENCY, History((), ()), (2, 1, 2))

    (rows,) = rows_of([span], values)

    chosen = [rows.distribution(row, FREQUENCY).sample(None) for row in range(4)]
    assert [2, 1, 0, 0] == chosen


def test_block_is_processed_as_plain_steps_would_be() -> None:
    """B26: row i of a block equals the single row of a lane that committed the proposals."""
    block = (4, 7, 7)
    sampler = RowSampler(1.0, (Penalties(repetition=1.2, frequency=0.4, presence=0.3, last_n=4),))
    values = np.random.default_rng(1).normal(0, 2, (4, 9)).astype(np.float32)

    (rows,) = rows_of([LaneSpan(0, sampler, HISTORY, block)], values)

    for row in range(4):
        history = History(HISTORY.prompt, HISTORY.generated + block[:row])
        (plain,) = rows_of([LaneSpan(0, sampler, history)], values[row : row + 1])
        expected = plain.distribution(0, sampler)
        actual = rows.distribution(row, sampler)
        assert [expected.probability(t) for t in range(9)] == [
            actual.probability(t) for t in range(9)
        ]


@pytest.mark.parametrize("sampler", [GREEDY, SAMPLED, FREQUENCY])
def test_row_that_cannot_be_sampled_fails_alone(sampler) -> None:
    values = logits([0, 1], [np.nan, 1], [0, 1])
    (rows,) = rows_of([LaneSpan(0, sampler, HISTORY, (0, 0))], values)

    with pytest.raises(InvalidLogits):
        rows.distribution(1, sampler)
    assert 1 == rows.distribution(0, sampler).sample(None)
    assert 1 == rows.distribution(2, sampler).sample(None)


def test_greedy_rows_outlive_the_logits() -> None:
    """An engine may compute its next pass into the same buffer."""
    values = logits([0, 1], [1, 0])
    (rows,) = rows_of([LaneSpan(0, GREEDY, HISTORY, (1,))], values)
    values[:] = 0

    assert [OneHot(1), OneHot(0)] == [rows.distribution(row, GREEDY) for row in (0, 1)]


def test_sampler_of_another_engine_is_refused() -> None:
    config = resolve_generation_config(None, GenerationOverrides())

    with pytest.raises(TypeError, match="ScriptedSampler"):
        process(logits([0, 1])[0], ScriptedSampler(config), HISTORY)


CONSTRAINED = SamplingInput(SAMPLED_CONFIG, (), 12, constraint=Stripes())


def test_constrained_block_is_processed_as_plain_steps_would_be() -> None:
    """B31: each row is masked at its own history, the last behind a token that broke the rule."""
    lane = RowSampler.from_input(CONSTRAINED).advance(OneHot(2), 2)
    block = (3, 6, 8, 8)
    values = np.random.default_rng(2).normal(0, 2, (5, 12)).astype(np.float32)
    (rows,) = rows_of([LaneSpan(0, lane, History((), (2,)), block)], values)

    state, sampler = Stripes().after(2), lane
    for row, token in enumerate(block[:3]):
        probabilities = rows.distribution(row, sampler)
        assert state.permitted() & set(range(12)) == {
            t for t in range(12) if probabilities.probability(t)
        }
        state, sampler = state.after(token), sampler.advance(probabilities, token)

    assert not lane.may_follow((2, 3, 6), 8)
    with pytest.raises(NothingAllowed, match="position 4"):
        rows.distribution(3, sampler)


def test_row_is_processed_once_for_its_distribution_and_its_logprob() -> None:
    """Both are asked for at one state; at another the row is another."""
    watched = Watched(Stripes())
    sampler = RowSampler.from_input(replace(CONSTRAINED, constraint=watched))
    (rows,) = rows_of([LaneSpan(0, sampler, History((), ()))], np.zeros((1, 12), np.float32))

    distribution = rows.distribution(0, sampler)
    rows.logprob(0, sampler, distribution.sample(0.3), 2)
    assert [()] == watched.log.masks

    rows.distribution(0, RowSampler.from_input(replace(CONSTRAINED, constraint=watched)))
    assert [(), ()] == watched.log.masks


@pytest.mark.parametrize("config", [GREEDY_CONFIG, SAMPLED_CONFIG])
def test_padding_is_no_part_of_any_row(config) -> None:
    """B10: nor of the model's own distribution."""
    sampler = RowSampler.from_input(SamplingInput(config, (), 2))
    (rows,) = rows_of([LaneSpan(0, sampler, HISTORY)], logits([0.0, 1.0, 90.0]))

    assert 1 == rows.distribution(0, sampler).sample(None)
    assert 0.0 == rows.distribution(0, sampler).probability(2)
    total = sum(math.exp(rows.raw_logprob(0, token, 0).logprob) for token in range(2))
    assert 1.0 == pytest.approx(total)


def test_prompt_rows_come_before_the_row_after_the_prompt() -> None:
    sampler = RowSampler.from_input(SamplingInput(SAMPLED_CONFIG, (), 2))
    span = LaneSpan(1, sampler, History((0, 1, 0), ()), prompt_rows=2)
    (rows,) = rows_of([span], logits([9, 9], [0, 1], [2, 0], [0, 3]))

    best = [rows.raw_logprob(row, 0, 2).alternatives[0][0] for row in range(3)]

    assert 3 == span.rows
    assert [1, 0, 1] == best
    assert 1 == rows.distribution(2, sampler).sample(None)
