"""Log-probabilities: of which distribution, how many alternatives, in which order."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from engines.sampling.kept import likeliest
from engines.sampling.logprobs import of_logits
from engines.sampling.row_sampler import RowSampler
from engines.sampling.rows import LaneSpan, rows_of
from engines.sampling.truncation import Truncation
from service.errors import InvalidLogits
from service.speculation.contract import History, SamplingInput
from tests.neutral import SAMPLED

EMPTY = History((), ())
LOGITS = np.log(np.array([0.1, 0.4, 0.2, 0.2, 0.1], np.float32))
GREEDY = replace(SAMPLED, do_sample=False, temperature=0.0)


def lane(config, logits=LOGITS, vocabulary: int = 5, **settings):
    """Return the rows and the sampler of a lane with one row."""
    request = SamplingInput(replace(config, **settings), (), vocabulary)
    sampler = RowSampler.from_input(request)
    (rows,) = rows_of([LaneSpan(0, sampler, EMPTY)], np.array([logits], np.float32))
    return rows, sampler


def logprob(token: int, alternatives: int, config=GREEDY, **lane_settings):
    rows, sampler = lane(config, **lane_settings)
    scored = rows.logprob(0, sampler, token, alternatives)
    return scored.logprob, scored.alternatives


def logs(**probabilities: float) -> tuple[tuple[int, float], ...]:
    return tuple(
        (int(token[1:]), pytest.approx(math.log(mass), abs=1e-6))
        for token, mass in probabilities.items()
    )


def test_greedy_row_is_softened_at_temperature_one() -> None:
    assert (pytest.approx(math.log(0.4), abs=1e-6), ()) == logprob(1, 0)


def test_alternatives_are_sorted_and_of_equals_the_lower_id_is_first() -> None:
    _, alternatives = logprob(1, 4)

    assert logs(t1=0.4, t2=0.2, t3=0.2, t0=0.1) == alternatives


def test_token_comes_behind_the_likeliest_where_it_is_not_among_them() -> None:
    """So it hides none of them, not even where only one was asked for."""
    _, alternatives = logprob(4, 2)

    assert logs(t1=0.4, t2=0.2, t4=0.1) == alternatives
    assert logs(t1=0.4, t4=0.1) == logprob(4, 1)[1]


def test_forbidden_tokens_are_no_alternatives() -> None:
    """Fewer are given where fewer have mass, and the others share what there is."""
    own, alternatives = logprob(2, 5, banned_token_ids=frozenset({0, 1, 4}))

    assert pytest.approx(math.log(0.5), abs=1e-6) == own
    assert logs(t2=0.5, t3=0.5) == alternatives


def test_greedy_row_has_its_bias_and_penalties() -> None:
    own, _ = logprob(0, 0, logit_bias={0: math.log(4.0), 1: -1e30})

    assert pytest.approx(math.log(0.4 / 0.9), abs=1e-6) == own


def test_tokens_without_mass_are_no_alternatives() -> None:
    _, alternatives = logprob(1, 5, logit_bias={0: -1e30})

    assert [1, 2, 3, 4] == [token for token, _ in alternatives]


def test_sampled_row_is_the_truncated_distribution() -> None:
    own, alternatives = logprob(1, 5, SAMPLED, top_k=3, temperature=0.5)

    assert pytest.approx(math.log(16 / 24), abs=1e-6) == own
    assert logs(t1=16 / 24, t2=4 / 24, t3=4 / 24) == alternatives


@pytest.mark.parametrize("config", [GREEDY, SAMPLED])
def test_raw_row_is_the_models_own_over_real_ids(config) -> None:
    """B10: no setting touches it, and a padded tail has no share."""
    settings = {"logit_bias": {0: 9.0}, "banned_token_ids": frozenset({1}), "top_k": 1}
    for extra in ({}, settings):
        rows, _ = lane(config, np.append(LOGITS, [50.0, 60.0]), vocabulary=5, **extra)

        scored = rows.raw_logprob(0, 4, 2)

        assert pytest.approx(math.log(0.1), abs=1e-6) == scored.logprob
        assert logs(t1=0.4, t2=0.2, t4=0.1) == scored.alternatives


def test_raw_token_without_mass_is_still_listed() -> None:
    """A prompt may hold what the model thinks impossible."""
    row = np.array([0.0, -2000.0, -3000.0], np.float32)

    scored = of_logits(row, 2, 3)

    assert ((0, 0.0), (2, -3000.0)) == scored.alternatives


def test_impossible_token_is_listed_nowhere() -> None:
    scored = of_logits(np.array([0.0, -np.inf], np.float32), 1, 2)

    assert (-math.inf, ((0, 0.0),)) == (scored.logprob, scored.alternatives)


def test_broken_row_has_no_logprob() -> None:
    with pytest.raises(InvalidLogits):
        of_logits(np.array([0.0, np.nan], np.float32), 0, 0)


@given(
    row=arrays(np.float32, 30, elements=st.integers(-40, 40).map(lambda step: step / 4)),
    token=st.integers(0, 29),
    alternatives=st.integers(0, 35),
)
def test_logits_agree_with_a_softmax_of_all(row, token, alternatives) -> None:
    total = math.fsum(math.exp(each) for each in row.tolist())
    expected = {each: math.log(math.exp(row[each]) / total) for each in range(30)}
    order = sorted(expected, key=lambda each: (-row[each], each))[:alternatives]
    if alternatives and token not in order:
        order.append(token)

    scored = of_logits(row, token, alternatives)

    assert pytest.approx(expected[token], abs=1e-5) == scored.logprob
    assert order == [each for each, _ in scored.alternatives]
    assert [pytest.approx(expected[each], abs=1e-5) for each in order] == [
        each for _, each in scored.alternatives
    ]


@given(values=st.lists(st.integers(0, 5), min_size=1, max_size=40), count=st.integers(1, 45))
def test_likeliest_are_the_highest_and_of_equals_the_first(values, count) -> None:
    expected = sorted(range(len(values)), key=lambda place: (-values[place], place))[:count]

    assert expected == likeliest(np.array(values, np.float32), count).tolist()


@given(
    row=arrays(np.float32, 20, elements=st.integers(-40, 40).map(lambda step: step / 4)),
    draw=st.floats(0.0, 1.0, exclude_max=True),
)
def test_sampled_logprob_is_that_of_the_probability(row, draw) -> None:
    """B25: of the very distribution that the token was drawn from."""
    sampler = RowSampler(0.7, truncation=Truncation(top_k=9, top_p=0.9))
    (rows,) = rows_of([LaneSpan(0, sampler, EMPTY)], row[None, :])
    distribution = rows.distribution(0, sampler)
    token = distribution.sample(draw)

    scored = rows.logprob(0, sampler, token, 20)

    assert pytest.approx(math.log(distribution.probability(token))) == scored.logprob
    assert 1.0 == pytest.approx(math.fsum(math.exp(log) for _, log in scored.alternatives))
