"""Mirostat: what it keeps, how it moves, and that the output then has the surprise asked for."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from engines.sampling.kept import Kept
from engines.sampling.mirostat import Mirostat
from engines.sampling.one_hot import OneHot
from engines.sampling.row_sampler import RowSampler
from service.generation.randomness import randomness_from_seed
from service.generation.sampling import MirostatSettings
from service.speculation.contract import History, Proposal
from service.speculation.policy import Accept, choose, judge
from tests.engines.sampling.reference import AmbiguousError, Settings, truncated

EMPTY = History((), ())
WIDE = np.random.default_rng(28).normal(0.0, 3.0, (8, 2000)).astype(np.float32)


def started(version: int = 2, tau: float = 3.0, eta: float = 0.1) -> RowSampler:
    return RowSampler(1.0, truncation=Mirostat.of(MirostatSettings(version, tau, eta)))


def mu_of(sampler: RowSampler) -> float:
    assert isinstance(sampler.truncation, Mirostat)
    return sampler.truncation.mu


@given(
    row=arrays(np.float32, 110, elements=st.integers(-80, 80).map(lambda step: step / 8)),
    version=st.sampled_from([1, 2]),
    mu=st.floats(-1.0, 12.0),
    temperature=st.sampled_from([1e-4, 0.5, 1.0, 3.0, 1e5]),
)
def test_keeps_what_its_definition_keeps(row, version, mu, temperature) -> None:
    try:
        settings = Settings(temperature=temperature, mirostat=(version, mu))
        expected = truncated(row.astype(float).tolist(), settings)
    except AmbiguousError:
        assume(False)

    result = Mirostat(version, 1.0, 1.0, mu).keep(row, float(row.max()), temperature)

    actual = dict(zip(result.ids.tolist(), result.probabilities.tolist(), strict=True))
    assert expected == pytest.approx(actual, rel=1e-6)


def test_second_version_keeps_a_surprise_of_at_most_mu() -> None:
    """Probabilities of 1/2, 1/4 and 1/8 have surprises of one, two and three bits."""
    row = np.log2(np.array([4, 2, 1, 1], np.float32)) * np.float32(math.log(2.0))

    kept = [
        Mirostat(2, 1.0, 1.0, mu).keep(row, float(row.max()), 1.0).ids.tolist()
        for mu in (0.5, 1.01, 2.01, 3.01)
    ]

    assert [[0], [0], [0, 1], [0, 1, 2, 3]] == kept


def test_surprise_is_measured_after_truncation_in_bits() -> None:
    """With 3/4 of the mass left, 1/4 of all is 1/3 of it."""
    sampler = started(tau=3.0, eta=0.5)
    distribution = Kept.of_weights(np.arange(2), np.array([2.0, 1.0]))

    moved = sampler.advance(distribution, 1)

    assert 6.0 == mu_of(sampler)
    assert 6.0 - 0.5 * (math.log2(3.0) - 3.0) == pytest.approx(mu_of(moved))


def test_each_row_is_kept_by_the_state_before_it() -> None:
    """A likely token lets `mu` grow, and the row after it then keeps more."""
    sampler = started(tau=5.0, eta=0.5)
    first = sampler.distribution(WIDE[0], EMPTY)

    moved = sampler.advance(first, int(WIDE[0].argmax()))

    assert mu_of(sampler) < mu_of(moved)
    assert first.ids.size < moved.distribution(WIDE[0], EMPTY).ids.size


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("tau", [1e-3, 1e308])
def test_absurd_settings_never_break_it(version, tau) -> None:
    sampler = RowSampler(
        1.0, truncation=replace(Mirostat.of(MirostatSettings(version, tau)), eta=1e308, mu=20.0)
    )
    for _ in range(4):
        distribution = sampler.distribution(WIDE[0], EMPTY)
        sampler = sampler.advance(distribution, distribution.sample(0.5))
        assert math.isfinite(mu_of(sampler))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("row", [[0.0], [1.0, 1.0, 1.0], [0.0, -np.inf, -np.inf]])
def test_row_without_a_slope_is_no_error(version, row) -> None:
    values = np.array(row, np.float32)

    kept = Mirostat(version, 1.0, 1.0, 20.0).keep(values, float(values.max()), 1.0)

    assert np.isfinite(values).sum() == kept.ids.size


def test_no_branch_is_promoted_under_it() -> None:
    assert not started().supports_optimistic_promotion
    assert RowSampler(1.0).supports_optimistic_promotion


def plain(sampler: RowSampler, count: int, seed: int) -> list[tuple[int, float]]:
    """Return tokens sampled one by one, and their surprises in bits."""
    stream, output = randomness_from_seed(seed, 1.0).target, []
    for position in range(count):
        target = sampler.distribution(WIDE[position % 8], EMPTY)
        token, stream = choose(target, stream)
        output.append((token, -math.log2(target.probability(token))))
        sampler = sampler.advance(target, token)
    return output


def speculative(sampler: RowSampler, count: int, seed: int) -> list[tuple[int, float]]:
    """Return the same where a draft of other logits proposes each token beforehand."""
    randomness = randomness_from_seed(seed, 1.0)
    stream, output = randomness.target, []
    for position in range(count):
        draft = sampler.distribution(WIDE[position % 8] + WIDE[(position + 3) % 8], EMPTY)
        proposal = Proposal(draft.sample(randomness.draft.at(position)), draft)
        target = sampler.distribution(WIDE[position % 8], EMPTY)
        decision, stream = judge(target, proposal, stream)
        token = proposal.token if isinstance(decision, Accept) else decision.replacement
        output.append((token, -math.log2(target.probability(token))))
        sampler = sampler.advance(target, token)
    return output


@pytest.mark.parametrize("decode", [plain, speculative])
@pytest.mark.parametrize("version", [1, 2])
def test_mean_surprise_is_the_one_asked_for(decode, version) -> None:
    """B28: 3.0 ± 0.5 bits over the last 400 of 500 tokens, speculation on and off."""
    surprises = [bits for _, bits in decode(started(version), 500, seed=5)]

    assert 3.0 == pytest.approx(sum(surprises[-400:]) / 400, abs=0.5)


def test_certain_token_lets_mu_grow() -> None:
    """A surprise of zero is less than was asked for."""
    assert 6.3 == pytest.approx(mu_of(started().advance(OneHot(1), 1)))
