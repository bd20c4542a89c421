"""Log-probabilities under speculation: the target's own, one for each token that was emitted."""

from __future__ import annotations

import math

import pytest

from engines.scripted.law import HashLaw
from tests.cases.asking import LOOKUP, NONE, asked, one, tokens_of
from tests.cases.stage import staged, tiny
from tests.cases.streaming import streamed
from tests.service.rpc.harness import served

LAW = HashLaw(candidates=6)
MODELS = {"scripted": lambda: staged(LAW), "tiny": lambda: tiny(draft_seed=1)}
PROPOSERS = {"scripted": ("mostly-right", "wrong", "own-law", LOOKUP), "tiny": ("draft", LOOKUP)}


def entries(answer) -> list[dict[int, float]]:
    """Return the alternatives of each token, after a look at the lists' own rules."""
    tokens = answer.tokens
    assert len(tokens.token_ids) == len(tokens.logprobs) == len(tokens.alternatives)
    found = []
    for token, value, each in zip(
        tokens.token_ids, tokens.logprobs, tokens.alternatives, strict=True
    ):
        assert list(each.logprobs) == sorted(each.logprobs, reverse=True)
        assert 1 <= len(each.token_ids) <= 3 + (token == each.token_ids[-1])
        pairs = dict(zip(each.token_ids, each.logprobs, strict=True))
        assert value == pairs[token]
        found.append(pairs)
    return found


@pytest.mark.parametrize("engine", MODELS)
def test_b25_greedy_values_are_those_of_plain_decoding(engine):
    """B25: under speculation they are zero, missing, or right for the first token alone."""
    model = MODELS[engine]()
    settings = {"temperature": 0.0, "max_new_tokens": 60, "logprobs": 3}
    plain = one(model, asked("once upon", NONE, **settings))
    expected = entries(plain)
    assert any(value < -0.01 for value in plain.tokens.logprobs)
    for proposer in PROPOSERS[engine]:
        fast = one(model, asked("once upon", proposer, 4, **settings))
        assert tokens_of(plain) == tokens_of(fast)
        for mine, theirs in zip(expected, entries(fast), strict=True):
            assert mine.keys() == theirs.keys()
            assert mine == pytest.approx(theirs, abs=1e-4)


def law_logprobs(history: tuple[int, ...], temperature: float) -> dict[int, float]:
    """Return the law's own values at a temperature, from its logits."""
    scaled = {token: logit / temperature for token, logit in LAW.logits(history)}
    total = math.log(sum(map(math.exp, scaled.values())))
    return {token: value - total for token, value in scaled.items()}


@pytest.mark.parametrize("proposer", [NONE, "own-law", "mostly-right"])
@pytest.mark.asyncio
async def test_b25_sampled_values_are_the_targets_at_each_tokens_own_prefix(proposer):
    """B25: at temperature 0.7 the outputs of a seed differ, so each is held to the law itself."""
    width = None if proposer == NONE else 4
    settings = {"temperature": 0.7, "seed": 11, "max_new_tokens": 60, "logprobs": 3}
    async with served(staged(LAW)) as server:
        answer = await streamed(
            server, asked("once", proposer, width, top_k=0, top_p=1.0, min_p=0.0, **settings)
        )

    history, scored = tuple(b"once"), 0
    for each in answer.rounds:
        tokens = each.tokens
        assert len(tokens.token_ids) == len(tokens.logprobs) == len(tokens.alternatives)
        for token, value in zip(tokens.token_ids, tokens.logprobs, strict=True):
            assert law_logprobs(history, 0.7)[token] == pytest.approx(value, abs=1e-4)
            history, scored = (*history, token), scored + 1
    assert 60 == scored
