"""Mirostat: what μ lets through, and how committed tokens move it."""

import math
import random
from statistics import fmean

import pytest

from engines.scripted.distribution import certain
from engines.scripted.mirostat import unsurprising
from service.generation.sampling import MirostatSettings
from tests.engines.scripted.rows import LOGITS, NOTHING, kept, row, sampler
from tests.neutral import GREEDY

V1 = MirostatSettings(version=1, tau=3.0, eta=0.1)
V2 = MirostatSettings(version=2, tau=3.0, eta=0.1)
# A law of Zipf over a vocabulary: the probability of rank r is 1/r, scaled.
ZIPF = tuple((token, -math.log(token + 1)) for token in range(250))


@pytest.mark.parametrize(
    ("tau", "left"), [(0.25, {1}), (0.5, {1}), (0.99, {1}), (1.0, {1, 4}), (1.5, {1, 4, 6, 9})]
)
def test_second_version_keeps_what_surprises_at_most_twice_tau(tau, left) -> None:
    """Surprises here are 1, 2, 3 and 3 bits; the likeliest token stays in any case."""
    assert left == kept(mirostat=MirostatSettings(version=2, tau=tau))


@pytest.mark.parametrize("version", [1, 2])
def test_other_truncations_have_no_say(version) -> None:
    settings = MirostatSettings(version=version, tau=9.0)

    assert {1, 4, 6, 9} == kept(mirostat=settings, top_k=1, top_p=0.1, min_p=1.0, typical_p=0.1)


def test_first_version_keeps_as_many_as_zipfs_law_says() -> None:
    """With an exponent of one, k is 2^μ / ln N: in the limit of the paper's formula."""
    total = math.fsum(1 / rank for rank in range(1, 251))
    weights = {token: 1 / (token + 1) / total for token in range(250)}

    for mu in (4.0, 5.0, 6.0):
        left = unsurprising(weights, V1, mu, vocabulary_size=250)
        assert round(2**mu / math.log(250)) == len(left)


def test_first_version_with_a_steep_row() -> None:
    """Exponent two: ε is one, k is (2^μ / (1 - 1/N)) to the power of one half."""
    total = math.fsum(rank**-2 for rank in range(1, 101))
    weights = {token: (token + 1) ** -2 / total for token in range(100)}

    left = unsurprising(weights, V1, 6.0, vocabulary_size=100)

    assert round(math.sqrt(64 / 0.99)) == len(left) == 8


@pytest.mark.parametrize("weights", [{3: 1.0}, {3: 0.5, 4: 0.5}, dict.fromkeys(range(200), 0.005)])
@pytest.mark.parametrize("mu", [-1e38, -5.0, 0.0, 8.0, 1e38])
@pytest.mark.parametrize("settings", [V1, V2], ids=["v1", "v2"])
def test_rows_without_a_slope_leave_at_least_one_token(weights, mu, settings) -> None:
    left = unsurprising(weights, settings, mu, vocabulary_size=261)

    assert left
    assert left.keys() <= weights.keys()


def test_committed_token_moves_the_state_by_its_surprise() -> None:
    """μ is 6 at first; a token of 3 bits is as wanted, one without surprise raises it."""
    state = sampler(mirostat=V2)
    before = state.process(LOGITS, NOTHING)

    assert 6.0 == state.advance(before, 6).mu
    assert pytest.approx(6.2) == state.advance(before, 1).mu
    assert pytest.approx(6.3) == state.advance(certain(8), 8).mu


def test_state_is_carried_from_token_to_token() -> None:
    state = sampler(mirostat=MirostatSettings(version=2, tau=1.0, eta=1.0))
    assert {1, 4} == set(row(state))

    state = state.advance(certain(8), 8)
    assert {1, 4, 6, 9} == set(row(state))


@pytest.mark.parametrize("settings", [V1, V2], ids=["v1", "v2"])
def test_mean_surprise_of_an_output_is_tau(settings) -> None:
    """B28: 500 tokens at tau 3 and eta 0.1; the last 400 have 3.0 bits a token, within 0.5."""
    state, draws, bits = sampler(mirostat=settings), random.Random(5), []
    for _ in range(500):
        processed = state.process(ZIPF, NOTHING)
        token = processed.sample(draws.random())
        bits.append(-math.log2(processed.probability(token)))
        state = state.advance(processed, token)

    assert pytest.approx(3.0, abs=0.5) == fmean(bits[100:])


def test_state_of_any_size_leaves_a_distribution() -> None:
    for version in (1, 2):
        state = sampler(mirostat=MirostatSettings(version=version, tau=1.0, eta=1e308))
        for token in (1, 8, 6, 6, 1):
            processed = state.process(LOGITS, NOTHING)
            assert pytest.approx(1.0) == math.fsum(processed.probabilities)
            state = state.advance(processed, token)


def test_no_branch_is_promoted_while_it_acts() -> None:
    assert sampler().supports_optimistic_promotion
    assert not sampler(mirostat=V2).supports_optimistic_promotion


def test_temperature_zero_leaves_it_without_effect() -> None:
    state = sampler(config=GREEDY, mirostat=V2)

    assert state.supports_optimistic_promotion
    assert state.advance(certain(1), 1).mu is None
    assert {1: 1.0} == row(state)
