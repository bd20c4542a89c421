"""Sparse distributions: draws, residuals and log-probabilities."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.scripted.distribution import (
    SparseDistribution,
    certain,
    distribution_of,
    saturated,
    softmax,
)
from service.speculation.contract import TokenLogprob

weights = st.dictionaries(st.integers(0, 20), st.floats(0.01, 1.0), min_size=1)
draws = st.floats(0.0, 1.0, exclude_max=True)
HALVES = SparseDistribution((2, 5, 7), (0.25, 0.5, 0.25))


def test_sample_is_the_inverse_of_the_cumulative_distribution() -> None:
    drawn = [HALVES.sample(draw) for draw in (0.0, 0.2499, 0.25, 0.7499, 0.75)]

    assert [2, 2, 5, 5, 7] == drawn


def test_sample_without_a_draw_takes_the_lowest_of_a_tie() -> None:
    assert 5 == SparseDistribution((2, 5, 7), (0.2, 0.4, 0.4)).sample(None)


@given(weights, draws)
def test_sample_of_any_draw_has_probability(mass, draw) -> None:
    row = distribution_of(mass)

    assert row.probability(row.sample(draw)) > 0.0


@given(weights, weights)
def test_excess_is_the_positive_difference_over_its_own_sum(target, draft) -> None:
    """Never a softmax of it: that would keep mass where the target has none left."""
    p, q = distribution_of(target), distribution_of(draft)
    difference = {t: max(0.0, p.probability(t) - q.probability(t)) for t in range(21)}
    total = math.fsum(difference.values())

    excess = p.excess_over(q)

    if excess is None:
        assert total == pytest.approx(0.0, abs=1e-12)
    else:
        for token, mass in difference.items():
            assert excess.probability(token) == pytest.approx(mass / total, abs=1e-6)


def test_excess_of_a_certain_token_over_another_is_itself() -> None:
    assert certain(3) == certain(3).excess_over(certain(4))
    assert certain(3).excess_over(certain(3)) is None


def test_distribution_leaves_out_what_has_no_weight() -> None:
    assert certain(2) == distribution_of({1: 0.0, 2: 3.0})


def test_softmax_of_the_farthest_logits_is_certain() -> None:
    assert {3: 1.0} == softmax({2: saturated(-math.inf), 3: saturated(math.inf)})


@pytest.mark.parametrize(
    ("token", "count", "listed"),
    [(5, 0, []), (5, 1, [5]), (5, 2, [5, 2]), (7, 1, [5, 7]), (7, 2, [5, 2, 7]), (7, 9, [5, 2, 7])],
)
def test_alternatives_are_the_likeliest_and_the_token_itself(token, count, listed) -> None:
    """B25: sorted, the lower id first among equals, the chosen one always there."""
    scored = HALVES.logprob(token, count)

    assert math.log(HALVES.probability(token)) == scored.logprob
    assert [(each, math.log(HALVES.probability(each))) for each in listed] == [*scored.alternatives]


def test_token_without_probability_is_no_alternative() -> None:
    assert TokenLogprob(-math.inf, ((5, math.log(0.5)),)) == HALVES.logprob(3, 1)
