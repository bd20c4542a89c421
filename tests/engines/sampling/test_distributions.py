"""One-hot and sparse distributions: look-ups, draws, and what one has beyond another."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.sampling.kept import Kept
from engines.sampling.one_hot import OneHot

SIZE = 6
WEIGHTS = st.lists(st.sampled_from([0.0, 0.0, 0.1, 0.5, 1.0]), min_size=SIZE, max_size=SIZE).filter(
    any
)


class Foreign:
    """A distribution of no class that the package knows."""

    def __init__(self, probabilities):
        self.probabilities = probabilities

    def probability(self, token):
        return self.probabilities[token]

    def sample(self, draw):
        raise NotImplementedError

    def excess_over(self, draft):
        raise NotImplementedError


def kept(*weights: float) -> Kept:
    return Kept.of_weights(np.arange(len(weights)), np.array(weights))


def dense(distribution, size: int = SIZE) -> list[float]:
    return [distribution.probability(token) for token in range(size)]


@given(WEIGHTS)
def test_kept_weights_become_probabilities(weights) -> None:
    total = sum(weights)

    distribution = kept(*weights)

    assert [weight / total for weight in weights] == pytest.approx(dense(distribution))
    assert (distribution.probabilities > 0.0).all()


def test_probability_of_an_unknown_token_is_zero() -> None:
    distribution = Kept.of_weights(np.array([2, 5]), np.array([1.0, 3.0]))

    assert [0.0, 0.0, 0.25, 0.0, 0.0, 0.75, 0.0] == dense(distribution, 7)


@pytest.mark.parametrize(
    ("draw", "token"), [(0.0, 1), (0.249, 1), (0.25, 3), (0.749, 3), (0.75, 4), (1 - 2**-53, 4)]
)
def test_draw_inverts_the_cumulative_in_order_of_ids(draw, token) -> None:
    distribution = kept(0.0, 1.0, 0.0, 2.0, 1.0)

    assert token == distribution.sample(draw)


@given(WEIGHTS, st.floats(0.0, 1.0, exclude_max=True))
def test_draw_never_gives_a_token_without_probability(weights, draw) -> None:
    assert weights[kept(*weights).sample(draw)] > 0.0


@given(st.integers(1, 3000), st.integers(0, 99))
def test_largest_draw_gives_the_last_token(size, seed) -> None:
    """The sum of rounded probabilities never falls short of the largest draw."""
    weights = np.random.default_rng(seed).random(size) + 1e-9

    assert size - 1 == Kept.of_weights(np.arange(size), weights).sample(1 - 2**-53)


def test_no_draw_is_the_lowest_of_the_likeliest() -> None:
    assert 1 == kept(0.1, 0.4, 0.4, 0.1).sample(None)
    assert 4 == OneHot(4).sample(None) == OneHot(4).sample(0.99)


def excess(target, draft):
    """Return max(0, target - draft) over its own sum, from look-ups alone; None without mass."""
    differences = [
        max(0.0, ours - theirs) for ours, theirs in zip(dense(target), dense(draft), strict=True)
    ]
    total = sum(differences)
    return None if total < 1e-9 else [difference / total for difference in differences]


DISTRIBUTIONS = st.one_of(
    st.integers(0, SIZE - 1).map(OneHot), WEIGHTS.map(lambda weights: kept(*weights))
)


@given(DISTRIBUTIONS, DISTRIBUTIONS)
def test_excess_is_the_normalised_positive_difference(target, draft) -> None:
    expected = excess(target, draft)

    for other in (draft, Foreign(dense(draft))):
        result = target.excess_over(other)
        assert expected == (None if result is None else pytest.approx(dense(result)))


def test_excess_over_itself_has_no_mass() -> None:
    assert kept(0.2, 0.3, 0.5).excess_over(kept(0.2, 0.3, 0.5)) is None
    assert OneHot(3).excess_over(OneHot(3)) is None


def test_excess_of_rounding_alone_has_no_mass() -> None:
    """A difference in the last bits is no distribution to draw from."""
    nearly = Kept(np.arange(2), np.array([0.5 + 1e-16, 0.5 - 1e-16]))

    assert kept(1.0, 1.0).excess_over(nearly) is None


def test_excess_is_divided_by_its_sum_not_softened() -> None:
    """B04: the residual of (.5, .5, 0) over (.9, .1, 0) is the second token alone."""
    residual = kept(0.5, 0.5, 0.0).excess_over(kept(0.9, 0.1, 0.0))

    assert residual is not None
    assert [0.0, 1.0, 0.0] == dense(residual, 3)
