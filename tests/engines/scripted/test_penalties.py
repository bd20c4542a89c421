"""Bias, and the penalties on repetition, frequency and presence."""

import math

import pytest

from service.generation.sampling import SamplerOrder
from service.speculation.contract import History
from tests.engines.scripted.rows import kept, row, sampler, shares
from tests.neutral import GREEDY


def processed(history: History, **settings) -> dict[int, float]:
    return row(sampler(**settings), history)


def test_repetition_penalty_acts_once_on_prompt_and_output() -> None:
    """A positive logit is divided, once; a zero one cannot move."""
    penalised = processed(History((1, 1, 6), (4,)), repetition_penalty=2.0)

    assert shares({1: 2.0, 4: math.sqrt(2.0), 6: 1.0, 9: 1.0}) == pytest.approx(penalised)


def test_repetition_penalty_multiplies_a_negative_logit() -> None:
    penalised = row(
        sampler(repetition_penalty=2.0), History((1,), ()), ((1, -math.log(2)), (4, 0.0))
    )

    assert {1: 0.2, 4: 0.8} == pytest.approx(penalised)


def test_repetition_penalty_below_one_acts() -> None:
    assert processed(History((1,), ()), repetition_penalty=0.5)[1] > 0.5


@pytest.mark.parametrize(("last", "seen"), [(-1, True), (0, False), (1, False), (2, True)])
def test_penalties_look_at_their_window(last, seen) -> None:
    penalised = processed(History((1,), (9,)), repetition_penalty=2.0, repeat_last_n=last)

    assert seen == (penalised[1] < 0.5)


@pytest.mark.parametrize(("last", "counted"), [(-1, 2), (0, 0), (1, 0), (2, 1), (3, 2)])
def test_frequency_counts_within_its_window(last, counted) -> None:
    """The window of the output, whatever the prompt is."""
    penalised = processed(
        History((6,) * 9, (1, 1, 9)), frequency_penalty=math.log(2), repeat_last_n=last
    )

    assert 0.5**counted * 4 == pytest.approx(penalised[1] / penalised[6])


def test_frequency_and_presence_count_the_output_only() -> None:
    """B26: two tokens of a block before a row are two tokens."""
    penalised = processed(
        History((4,), (1, 1)), frequency_penalty=math.log(2), presence_penalty=math.log(2)
    )

    assert shares({1: 0.5, 4: 2, 6: 1, 9: 1}) == pytest.approx(penalised)


def test_negative_penalties_favour_what_was_said() -> None:
    assert {6} == kept(History((), (6,)), config=GREEDY, presence_penalty=-9.0)


def test_bias_shifts_a_logit() -> None:
    shifted = row(sampler(logit_bias={6: math.log(4), 1: -math.log(4)}))

    assert shares({1: 1, 4: 2, 6: 4, 9: 1}) == pytest.approx(shifted)


def test_bias_can_choose_a_token_that_the_law_does_not_list() -> None:
    assert {77} == kept(config=GREEDY, logit_bias={77: 100.0})


def test_bias_is_penalised_like_any_logit() -> None:
    """The bias comes first: what was said is penalised from where the bias put it."""
    history = History((), (77,))

    assert {1} == kept(history, config=GREEDY, logit_bias={77: 32.0}, repetition_penalty=2.0)


@pytest.mark.parametrize(
    "settings",
    [
        {"logit_bias": {1: 3e38, 4: -3e38}, "repetition_penalty": 1e30},
        {"repetition_penalty": 1e-300},
        {"frequency_penalty": -1e308, "presence_penalty": -1e308},
        {"logit_bias": {1: 1e308}, "temperature": 1e-3},
    ],
)
@pytest.mark.parametrize("order", SamplerOrder)
def test_settings_of_any_size_leave_a_distribution(settings, order) -> None:
    history = History((1, 4), (1, 1, 6))

    penalised = row(sampler(sampler_order=order, typical_p=0.9, **settings), history)

    assert math.fsum(penalised.values()) == pytest.approx(1.0)
