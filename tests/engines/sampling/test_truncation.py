"""Every truncation against its definition."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from engines.sampling.truncation import Truncation
from tests.engines.sampling.reference import AmbiguousError, Settings, truncated

# A coarse grid has ties, and thresholds that are hit exactly.
GRID = st.integers(-60, 60).map(lambda step: step / 4)
ROWS = st.integers(1, 40).flatmap(lambda size: arrays(np.float32, size, elements=GRID))
SETTINGS = st.builds(
    Settings,
    temperature=st.sampled_from([0.2, 0.7, 1.0, 1.5, 40.0]),
    top_k=st.integers(0, 45),
    top_p=st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0.01, 0.999)),
    min_p=st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0.001, 0.9)),
    top_a=st.one_of(st.just(0.0), st.floats(0.001, 3.0)),
    typical_p=st.one_of(st.just(1.0), st.floats(0.05, 0.999)),
)


def kept(row, settings: Settings) -> dict[int, float]:
    truncation = Truncation(
        settings.top_k, settings.top_p, settings.min_p, settings.top_a, settings.typical_p
    )
    distribution = truncation.keep(row, float(row.max()), settings.temperature)
    ids = distribution.ids.tolist()
    assert ids == sorted(ids)
    return dict(zip(ids, distribution.probabilities.tolist(), strict=True))


def expected(row, settings: Settings) -> dict[int, float]:
    try:
        return truncated(row.astype(float).tolist(), settings)
    except AmbiguousError:
        assume(False)
        raise


@given(row=ROWS, settings=SETTINGS)
def test_truncation_keeps_what_its_definition_keeps(row, settings) -> None:
    assert expected(row, settings) == pytest.approx(kept(row, settings), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("top_p", [0.3, 0.9, 0.999])
@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("spread", [0.01, 1.0, 20.0])
def test_top_p_of_a_whole_vocabulary_is_exact(top_p, temperature, spread) -> None:
    """The candidates may hold all, some or next to none of the mass that is asked for."""
    row = np.random.default_rng(3).normal(0.0, spread, 5000).astype(np.float32)
    settings = Settings(temperature=temperature, top_p=top_p)

    result = kept(row, settings)

    assert truncated(row.astype(float).tolist(), settings) == pytest.approx(result, rel=1e-9)


def test_top_p_beyond_the_candidates_takes_the_whole_row() -> None:
    """One peak and far below it so many ids that together they outweigh it."""
    row = np.full(300_000, -12.5, np.float32)
    row[7] = 0.0

    result = kept(row, Settings(top_p=0.6))

    assert 1 < len(result) < row.size
    assert max(result) == len(result) - 1


@pytest.mark.parametrize(
    ("top_k", "size"), [(1, 2), (2, 2), (3, 5), (5, 5), (6, 6), (0, 6), (9, 6)]
)
def test_top_k_keeps_ties_of_the_last(top_k, size) -> None:
    row = np.array([1.0, 3.0, 2.0, 2.0, 3.0, 2.0], np.float32)
    row[1 if top_k >= 6 else 0] -= 1.0

    assert size == len(kept(row, Settings(top_k=top_k)))


def test_top_k_wider_than_the_candidates_takes_the_whole_row() -> None:
    row = np.array([0.0, -50.0, -60.0, -70.0], np.float32)

    assert [0, 1, 2] == list(kept(row, Settings(top_k=3)))


def test_top_p_of_zero_keeps_one_id() -> None:
    """B29: zero is a valid top-p, and the lowest of equal ids stays."""
    assert {1: 1.0} == kept(np.array([0.0, 2.0, 2.0], np.float32), Settings(top_p=0.0))


def test_top_p_cuts_ties_by_id() -> None:
    row = np.zeros(4, np.float32)

    assert [0, 1, 2] == list(kept(row, Settings(top_p=0.6)))


def test_top_p_measures_mass_behind_top_k() -> None:
    row = np.log(np.array([0.3, 0.3, 0.3, 0.1], np.float32))

    assert [0, 1] == list(kept(row, Settings(top_k=3, top_p=0.6)))


def test_forbidden_ids_are_never_kept() -> None:
    row = np.array([-np.inf, 1.0, -np.inf, 0.0], np.float32)

    for settings in (Settings(), Settings(top_k=3), Settings(top_p=0.99), Settings(min_p=1e-9)):
        assert {1, 3} == set(kept(row, settings))


def test_weights_without_mass_are_dropped() -> None:
    """What is kept has a probability above zero, so a draft never proposes the impossible."""
    row = np.array([0.0, -900.0], np.float32)

    assert {0: 1.0} == kept(row, Settings(temperature=0.5))


def test_top_a_asks_for_a_share_of_the_square() -> None:
    """A quarter of the square of 0.5 is 0.0625, and of 0.5 itself 0.125."""
    row = np.log(np.array([0.5, 0.35, 0.1, 0.05], np.float32))

    assert [0, 1, 2] == list(kept(row, Settings(top_a=0.25)))


def test_top_a_beyond_one_keeps_the_likeliest() -> None:
    assert {1: 1.0} == kept(np.array([0.0, 2.0, 1.0], np.float32), Settings(top_a=9.0))


def test_typical_p_can_leave_out_the_likeliest() -> None:
    """The entropy is 1.47: a fifth, of surprise 1.61, is nearest to it."""
    row = np.log(np.array([0.4, 0.2, 0.2, 0.1, 0.1], np.float32))

    assert [1, 2] == list(kept(row, Settings(typical_p=0.35)))


@pytest.mark.parametrize("spread", [0.01, 3.0])
@pytest.mark.parametrize("typical_p", [0.2, 0.95])
def test_typical_p_of_a_whole_vocabulary_is_exact(spread, typical_p) -> None:
    """Whether a few ids hold the mass or nearly all are needed."""
    row = np.random.default_rng(5).normal(0.0, spread, 5000).astype(np.float32)
    weights = np.exp(row.astype(float))
    weights /= weights.sum()
    distance = np.abs(-np.log(weights) + (weights * np.log(weights)).sum())
    order = np.argsort(distance)
    count = int(np.searchsorted(np.cumsum(weights[order]), typical_p)) + 1

    assert set(order[:count]) == set(kept(row, Settings(typical_p=typical_p)))


@pytest.mark.parametrize("top_p", [0.5, 1.0])
def test_heat_beyond_any_number_leaves_forbidden_ids_forbidden(top_p) -> None:
    """B29: minus infinity over a huge temperature is still minus infinity."""
    row = np.array([-np.inf, 1.0, -np.inf, 0.0], np.float32)

    with np.errstate(over="ignore"):
        result = kept(row, Settings(temperature=1e300, top_p=top_p))

    assert ([1] if top_p < 1.0 else [1, 3]) == list(result)
