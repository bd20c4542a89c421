"""One request's state: what it says of itself, and of its rows' log-probabilities."""

import math

import pytest

from engines.scripted.distribution import certain
from service.speculation.contract import History, TokenLogprob
from tests.engines.scripted.rows import LOGITS, NOTHING, only, row, sampler
from tests.neutral import GREEDY


def test_row_at_temperature_zero_is_certain() -> None:
    assert {1: 1.0} == row(sampler(config=GREEDY))


def test_tie_at_temperature_zero_is_the_lowest_id() -> None:
    assert {6: 1.0} == row(sampler(config=GREEDY), NOTHING, ((6, 2.0), (9, 2.0)))


def test_state_without_settings_counts_and_nothing_else() -> None:
    state = sampler()

    advanced = state.advance(certain(3), 3)

    assert (1, state.request, None) == (advanced.committed, advanced.request, advanced.mu)
    assert not advanced.grammar_is_complete()
    assert not advanced.prefix_is_complete((3,))
    assert advanced.may_follow((3,), 3)


@pytest.mark.parametrize("token", [1, 4, 6])
def test_logprob_of_a_sampled_row_is_the_processed_one(token) -> None:
    """B25: after temperature and truncation, at the row's own history."""
    state, history = sampler(temperature=0.5, top_k=2, presence_penalty=1.0), History((), (4,))
    processed = state.process(LOGITS, history)

    scored = state.logprob(LOGITS, history, token, 4)

    probability = processed.probability(token)
    assert scored.logprob == (math.log(probability) if probability else -math.inf)
    assert len(processed.tokens) == len(scored.alternatives)


def test_logprob_at_temperature_zero_is_of_the_processed_logits() -> None:
    """Penalties, bias and mask count; the temperature is one and nothing is truncated."""
    state = sampler(
        config=GREEDY, presence_penalty=math.log(2), banned_token_ids=frozenset({9}), top_k=1
    )

    scored = state.logprob(LOGITS, History((), (1,)), 1, 2)

    assert pytest.approx(math.log(0.4)) == scored.logprob
    assert [1, 4] == [token for token, _ in scored.alternatives]


def test_logprob_of_the_only_token_of_a_mask_is_zero() -> None:
    state = sampler(config=GREEDY, constraint=only((70,)))

    assert TokenLogprob(0.0, ((70, 0.0),)) == state.logprob(LOGITS, NOTHING, 70, 5)
