"""Processing of rows, against its definition on small examples."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.scripted.sampling import (
    ScriptedSampler,
    SparseDistribution,
    certain,
    distribution_of,
)
from service.generation.config import ResolvedGenerationConfig
from service.speculation.contract import History

SAMPLED = ResolvedGenerationConfig(
    do_sample=True,
    temperature=1.0,
    top_k=0,
    top_p=1.0,
    min_p=0.0,
    repetition_penalty=1.0,
    repeat_last_n=64,
    frequency_penalty=0.0,
    presence_penalty=0.0,
    max_new_tokens=None,
)
NOTHING = History((), ())
# Probabilities 0.5, 0.25, 0.125, 0.125.
LOGITS = ((1, math.log(4)), (4, math.log(2)), (6, 0.0), (9, 0.0))
weights = st.dictionaries(st.integers(0, 20), st.floats(0.01, 1.0), min_size=1)
draws = st.floats(0.0, 1.0, exclude_max=True)


def processed(history=NOTHING, **settings) -> dict[int, float]:
    row = ScriptedSampler(replace(SAMPLED, **settings)).process(LOGITS, history)
    return dict(zip(row.tokens, row.probabilities, strict=True))


def test_process_without_settings_is_the_softmax() -> None:
    assert {1: 0.5, 4: 0.25, 6: 0.125, 9: 0.125} == pytest.approx(processed())


def test_process_at_temperature_zero_is_certain() -> None:
    assert {1: 1.0} == processed(temperature=0.0, do_sample=False)


def test_process_at_a_tiny_temperature_is_certain() -> None:
    assert {1: 1.0} == processed(temperature=1e-310)


def test_process_at_half_the_temperature_squares() -> None:
    assert {1: 16 / 22, 4: 4 / 22, 6: 1 / 22, 9: 1 / 22} == pytest.approx(
        processed(temperature=0.5)
    )


@pytest.mark.parametrize(
    ("top_k", "kept"),
    [(0, {1, 4, 6, 9}), (1, {1}), (2, {1, 4}), (3, {1, 4, 6, 9}), (9, {1, 4, 6, 9})],
)
def test_top_k_keeps_ties_with_the_last(top_k, kept) -> None:
    assert kept == set(processed(top_k=top_k))


@pytest.mark.parametrize(
    ("top_p", "kept"),
    [(0.0, {1}), (0.5, {1}), (0.51, {1, 4}), (0.8, {1, 4, 6}), (1.0, {1, 4, 6, 9})],
)
def test_top_p_keeps_the_token_that_reaches_it(top_p, kept) -> None:
    assert kept == set(processed(top_p=top_p))


@pytest.mark.parametrize(("min_p", "kept"), [(0.5, {1, 4}), (0.51, {1}), (1.0, {1})])
def test_min_p_is_a_share_of_the_likeliest(min_p, kept) -> None:
    assert kept == set(processed(min_p=min_p))


def test_repetition_penalty_acts_once_on_prompt_and_output() -> None:
    """A positive logit is divided, once; a zero one cannot move."""
    row = processed(History((1, 1, 6), (4,)), repetition_penalty=2.0)

    scores = {1: 2.0, 4: math.sqrt(2.0), 6: 1.0, 9: 1.0}
    total = sum(scores.values())
    assert {token: score / total for token, score in scores.items()} == pytest.approx(row)


def test_repetition_penalty_below_one_acts() -> None:
    assert processed(History((1,), ()), repetition_penalty=0.5)[1] > 0.5


@pytest.mark.parametrize(("last", "seen"), [(-1, True), (0, False), (1, False), (2, True)])
def test_penalties_look_at_their_window(last, seen) -> None:
    row = processed(History((1,), (9,)), repetition_penalty=2.0, repeat_last_n=last)

    assert seen == (row[1] < 0.5)


def test_frequency_and_presence_count_the_output_only() -> None:
    row = processed(
        History((4,), (1, 1)), frequency_penalty=math.log(2), presence_penalty=math.log(2)
    )

    assert {1: 0.5 / 4.5, 4: 2 / 4.5, 6: 1 / 4.5, 9: 1 / 4.5} == pytest.approx(row)


def test_sample_is_the_inverse_of_the_cumulative_distribution() -> None:
    row = SparseDistribution((2, 5, 7), (0.25, 0.5, 0.25))

    assert [2, 2, 5, 5, 7] == [row.sample(draw) for draw in (0.0, 0.2499, 0.25, 0.7499, 0.75)]


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


def test_sampler_does_not_depend_on_commits() -> None:
    sampler = ScriptedSampler(SAMPLED)

    assert sampler is sampler.advance(certain(3), 3)
    assert not sampler.grammar_is_complete()
    assert not sampler.prefix_is_complete((3,))


def test_distribution_leaves_out_what_has_no_weight() -> None:
    assert certain(2) == distribution_of({1: 0.0, 2: 3.0})
