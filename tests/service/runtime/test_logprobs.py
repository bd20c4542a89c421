"""Log-probabilities on their way through passes, rounds and chunks."""

import math

import pytest

from engines.scripted.floor import with_floor
from engines.scripted.model import ScriptedSettings
from engines.scripted.vocabulary import VOCABULARY_SIZE
from service.generation.config import GenerationOverrides
from service.generation.sampling import MirostatSettings
from service.speculation.options import SchedulerOptions
from service.text.language import Regex
from tests.service.runtime.doubles import (
    LAW,
    PLAIN,
    DrivenEngine,
    drained,
    loaded_model,
    loaded_proposer,
    request,
    tokens_of,
)

EIGHT = ScriptedSettings(law=LAW, max_context=128, max_slots=8)
PROMPT = "hello wide world"


def engine(chunk=256, rules=("mostly-right",)):
    proposers = tuple(loaded_proposer(rule, rule) for rule in rules)
    scheduler = SchedulerOptions(prefill_chunk_tokens=chunk)
    return DrivenEngine(loaded_model(EIGHT, proposers=proposers, scheduler=scheduler))


def rounds_of(driven, asked):
    ticket = driven.submit(asked)
    driven.run()
    return drained(ticket)[:-1]


def asked(**overrides):
    return GenerationOverrides(max_new_tokens=24, **overrides)


def logprobs_of(rounds):
    return tuple(each for published in rounds for each in published.logprobs)


def law_logprob(history, token):
    """Return the law's own log-probability of a token, from its logits and the engine's floor."""
    logits = with_floor(LAW.logits(tuple(history)), VOCABULARY_SIZE)
    return logits[token] - math.log(sum(map(math.exp, logits.values())))


SAMPLED = {"temperature": 0.9, "top_k": 0, "top_p": 1.0, "min_p": 0.0}


@pytest.mark.parametrize("rule", ["right", "wrong", "mostly-right"])
@pytest.mark.parametrize("settings", [{}, SAMPLED], ids=["greedy", "sampled"])
def test_each_committed_token_has_its_own_rows_value(rule, settings):
    """B25: one entry for each token, the target's own, with a proposer as without one."""
    given = request(PROMPT, overrides=asked(logprobs=3, **settings), seed=7)
    rounds = rounds_of(engine(rules=(rule,)), given)
    tokens, scored = tokens_of(rounds), logprobs_of(rounds)
    assert len(tokens) == len(scored) == 24
    history = list(PROMPT.encode())
    for token, each in zip(tokens, scored, strict=True):
        if not settings:
            assert each.logprob == pytest.approx(law_logprob(history, token), abs=1e-9)
        values = [value for _, value in each.alternatives]
        assert values == sorted(values, reverse=True)
        assert (token, each.logprob) in each.alternatives
        history.append(token)
    assert any(each.logprob < 0.0 for each in scored)


def test_greedy_values_are_the_same_with_and_without_speculation():
    """B25: equal to 1e-4 and better, also where proposals were rejected."""
    plain = rounds_of(
        engine(),
        request(PROMPT, overrides=asked(logprobs=2, frequency_penalty=0.4), speculation=PLAIN),
    )
    fast = rounds_of(engine(), request(PROMPT, overrides=asked(logprobs=2, frequency_penalty=0.4)))
    assert tokens_of(plain) == tokens_of(fast)
    assert len(fast) < len(plain)
    assert logprobs_of(plain) == logprobs_of(fast)


@pytest.mark.parametrize("rule", ["right", "wrong", "mostly-right"])
def test_values_are_of_the_state_that_a_token_was_drawn_in(rule):
    """B28: under Mirostat each token moves the state, and its own value is of the one before."""
    settings = MirostatSettings(version=2, tau=0.5, eta=0.8)
    given = request(PROMPT, overrides=asked(logprobs=0, temperature=1.0, mirostat=settings), seed=7)
    rounds = rounds_of(engine(rules=(rule,)), given)
    history, mu = list(PROMPT.encode()), 2.0 * settings.tau
    for token, each in zip(tokens_of(rounds), logprobs_of(rounds), strict=True):
        law = {other: law_logprob(history, other) for other in range(VOCABULARY_SIZE)}
        kept = [value for value in law.values() if -value / math.log(2.0) <= mu]
        mass = sum(map(math.exp, kept)) if kept else math.exp(max(law.values()))
        assert each.logprob == pytest.approx(law[token] - math.log(mass), abs=1e-9)
        mu -= settings.eta * (-each.logprob / math.log(2.0) - settings.tau)
        history.append(token)
    assert 1 < len({round(each.logprob, 6) for each in logprobs_of(rounds)})


@pytest.mark.parametrize("rule", ["right", "wrong"])
def test_only_token_that_a_constraint_permits_is_certain(rule):
    driven = engine(rules=(rule,))
    given = request(PROMPT, overrides=asked(logprobs=2), constraint=Regex("wide"))
    rounds = rounds_of(driven, given)
    assert tuple(b"wide") == tokens_of(rounds)
    assert [0.0] * 4 == [each.logprob for each in logprobs_of(rounds)]


def test_none_are_computed_where_none_were_asked_for():
    rounds = rounds_of(engine(), request(PROMPT, overrides=asked()))
    assert () == logprobs_of(rounds)
    assert all(not published.prompt_logprobs for published in rounds)


@pytest.mark.parametrize("chunk", [1, 2, 5, len(PROMPT) - 1, len(PROMPT), 256])
def test_prompt_values_do_not_depend_on_chunks(chunk):
    given = request(PROMPT, overrides=asked(prompt_logprobs=1))
    first, *rest = rounds_of(engine(chunk), given)
    prompt = PROMPT.encode()
    expected = [law_logprob(prompt[:place], prompt[place]) for place in range(1, len(prompt))]
    told = [each.logprob for each in first.prompt_logprobs]
    assert expected == pytest.approx(told)
    assert len(set(told)) > 3
    assert all(not published.prompt_logprobs for published in rest)


def test_prompt_values_leave_the_output_alone():
    plain = rounds_of(engine(3), request(PROMPT, overrides=asked()))
    scored = rounds_of(engine(3), request(PROMPT, overrides=asked(prompt_logprobs=0)))
    assert tokens_of(plain) == tokens_of(scored)
    assert [()] * (len(PROMPT) - 1) == [each.alternatives for each in scored[0].prompt_logprobs]


def test_a_prompt_of_one_token_has_none():
    (first, *_) = rounds_of(engine(), request("h", overrides=asked(prompt_logprobs=2)))
    assert () == first.prompt_logprobs
