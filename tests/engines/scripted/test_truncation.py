"""Truncations and XTC, by hand on a row of 0.5, 0.25, 0.125 and 0.125."""

import math

import pytest

from service.generation.randomness import AddressedRandomness
from service.generation.sampling import MirostatSettings, SamplerOrder, XtcSettings
from service.speculation.contract import History
from tests.engines.scripted.rows import NOTHING, kept, row, sampler, shares

COINS = AddressedRandomness(b"coins")
ALWAYS = XtcSettings(probability=1.0, threshold=0.2)


@pytest.mark.parametrize(
    ("top_k", "left"),
    [(0, {1, 4, 6, 9}), (1, {1}), (2, {1, 4}), (3, {1, 4, 6, 9}), (9, {1, 4, 6, 9})],
)
def test_top_k_keeps_ties_with_the_last(top_k, left) -> None:
    assert left == kept(top_k=top_k)


@pytest.mark.parametrize(
    ("top_p", "left"),
    [(0.0, {1}), (0.5, {1}), (0.51, {1, 4}), (0.8, {1, 4, 6}), (1.0, {1, 4, 6, 9})],
)
def test_top_p_keeps_the_token_that_reaches_it(top_p, left) -> None:
    """B29: zero is a value, and leaves the likeliest."""
    assert left == kept(top_p=top_p)


@pytest.mark.parametrize(("min_p", "left"), [(0.5, {1, 4}), (0.51, {1}), (1.0, {1})])
def test_min_p_is_a_share_of_the_likeliest(min_p, left) -> None:
    assert left == kept(min_p=min_p)


@pytest.mark.parametrize(
    ("top_a", "left"),
    [(0.5, {1, 4, 6, 9}), (0.6, {1, 4}), (1.0, {1, 4}), (1.01, {1}), (100.0, {1})],
)
def test_top_a_is_a_share_of_the_likeliest_squared(top_a, left) -> None:
    """However large the share, the likeliest token is left."""
    assert left == kept(top_a=top_a)


@pytest.mark.parametrize(
    ("typical_p", "left"),
    # Surprises are 1, 2, 3 and 3 bits, and their mean is 1.75.
    [(0.1, {4}), (0.25, {4}), (0.26, {1, 4}), (0.76, {1, 4, 6}), (1.0, {1, 4, 6, 9})],
)
def test_typical_p_keeps_what_is_nearest_to_the_mean_surprise(typical_p, left) -> None:
    """The likeliest token is not the most typical one."""
    assert left == kept(typical_p=typical_p)


def test_steps_look_at_what_the_step_before_left() -> None:
    """Of two tokens, scaled to one, the first has two thirds and reaches the top-p alone."""
    assert {1} == kept(top_k=2, top_p=0.6)
    assert {1, 4} == kept(top_p=0.6)


def test_temperature_comes_before_the_truncations() -> None:
    """At half the temperature the row is 16, 4, 1 and 1 parts of 22, and the first is enough."""
    assert {1} == kept(temperature=0.5, top_p=0.7)


def test_temperature_may_come_after_the_truncations() -> None:
    last = sampler(temperature=0.5, top_p=0.7, sampler_order=SamplerOrder.TEMPERATURE_LAST)

    assert shares({1: 16, 4: 4}) == pytest.approx(row(last))


def test_xtc_drops_all_but_the_least_likely_choice() -> None:
    assert shares({4: 2, 6: 1, 9: 1}) == pytest.approx(row(sampler(xtc=ALWAYS, coins=COINS)))


@pytest.mark.parametrize(
    ("threshold", "left"),
    [(0.125, {9}), (0.25, {4, 6, 9}), (0.26, {1, 4, 6, 9}), (0.6, {1, 4, 6, 9})],
)
def test_xtc_needs_two_tokens_at_its_threshold(threshold, left) -> None:
    """Of equals the highest id counts as the least likely."""
    assert left == kept(xtc=XtcSettings(1.0, threshold), coins=COINS)


def test_xtc_acts_where_the_coin_of_the_position_is_below_its_probability() -> None:
    """The coin is the position's own, whoever asks and how often."""
    settings = XtcSettings(probability=0.5, threshold=0.2)

    for position in range(20):
        left = kept(History((), (99,) * position), xtc=settings, coins=COINS)
        assert (COINS.at(position) < 0.5) == (1 not in left)


def test_xtc_of_probability_zero_or_without_coins_is_off() -> None:
    for off in ({"xtc": XtcSettings(0.0, 0.1), "coins": COINS}, {"xtc": ALWAYS}):
        assert {1, 4, 6, 9} == kept(**off)


def test_xtc_looks_at_what_mirostat_left() -> None:
    """One token is left, and one choice alone is never dropped."""
    settings = MirostatSettings(version=2, tau=0.5, eta=0.1)

    assert {1} == kept(mirostat=settings, xtc=XtcSettings(1.0, 0.1), coins=COINS)


def test_truncations_have_no_effect_at_temperature_zero() -> None:
    greedy = {"temperature": 0.0, "do_sample": False}

    for setting in ({"typical_p": 0.1}, {"xtc": XtcSettings(1.0, 0.1), "coins": COINS}):
        assert {1} == kept(**greedy, **setting)


def test_settings_that_are_off_leave_the_softmax() -> None:
    assert {1: 0.5, 4: 0.25, 6: 0.125, 9: 0.125} == pytest.approx(row(sampler(), NOTHING))


@pytest.mark.parametrize("temperature", [1e-310, 1e-30])
def test_tiny_temperature_is_certain(temperature) -> None:
    """B29: it overflows nothing."""
    assert {1: 1.0} == row(sampler(temperature=temperature))


def test_half_the_temperature_squares() -> None:
    halved = row(sampler(temperature=0.5))

    assert shares({1: 16, 4: 4, 6: 1, 9: 1}) == pytest.approx(halved)
    assert math.fsum(halved.values()) == pytest.approx(1.0)
