"""Speculation changes neither greedy output nor the distribution of sampled output."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from engines.scripted.law import EchoLaw, HashLaw, Logits
from engines.scripted.rules import FollowLaw
from outrider.v1.generation_service_pb2 import StreamGenerateRequest
from tests.cases.asking import (
    LOOKUP,
    NONE,
    asked,
    output_of,
    played,
    tokens_of,
)
from tests.cases.stage import fixed, staged, tiny
from tests.service.rpc.harness import complete, exhausted, served, text_of

REPEATING = "the cat sat on the mat, the cat sat on the mat, the cat sat on the mat, "


@dataclass(frozen=True, slots=True)
class TiedLaw:
    """Whole-numbered logits, so that many rows have several likeliest tokens."""

    law: HashLaw

    def logits(self, history: Sequence[int]) -> Logits:
        return tuple((token, float(int(logit))) for token, logit in self.law.logits(history))


MODELS = {
    "ties": lambda: staged(TiedLaw(HashLaw(candidates=6))),
    "copies": lambda: staged(EchoLaw()),
    "tiny": tiny,
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_b01_greedy_output_is_the_same_with_any_proposer_and_width(model):
    """B01: drafting, whoever drafts and however wide, changes greedy output.

    Whole-numbered logits tie often, and ties go to the lowest id on both paths; the tiny model
    computes in float32.
    """
    loaded = model()
    (plain,) = played(loaded, [asked(REPEATING, NONE, temperature=0.0, max_new_tokens=150)])
    proposers = [LOOKUP, *(each.name for each in loaded.proposers)]
    widths = [(proposer, width) for proposer in proposers for width in (1, 2, 4, 8)]
    fast = played(
        loaded,
        [asked(REPEATING, *each, temperature=0.0, max_new_tokens=150) for each in widths],
    )

    assert 150 == len(plain.tokens.token_ids)
    for each, answer in zip(widths, fast, strict=True):
        assert output_of(plain) == output_of(answer), each
    statistics = [answer.finished.statistics for answer in fast]
    assert any(0 < one.accepted_tokens for one in statistics)
    assert any(one.accepted_tokens < one.judged_tokens for one in statistics)


def chi_square(counts: Counter[int], expected: Sequence[tuple[int, float]]) -> float:
    total = counts.total()
    return sum((counts[token] - total * mass) ** 2 / (total * mass) for token, mass in expected)


TARGET = fixed(a=0.5, b=0.3, c=0.2)
CRITICAL = 18.4
"""What chi-square with two degrees of freedom exceeds once in ten thousand times."""


@pytest.mark.parametrize(
    ("proposer", "length", "seeds"),
    [("draft", 1, 2000), ("draft", 8, 2000), (NONE, 1, 2000), (NONE, 8, 500)],
)
def test_b02_sampling_under_speculation_really_samples(proposer, length, seeds):
    """B02: the speculative path filters probabilities and then takes the likeliest token.

    2 000 seeds, on the engine without gRPC; every position has its own chi-square. Plain decoding
    is the same code at every position, so that of its longer outputs fewer are drawn.
    """
    model = staged(TARGET, drafts={"draft": FollowLaw(fixed(a=0.2, b=0.3, c=0.5))})
    answers = played(
        model,
        [
            asked("xyz", proposer, temperature=1.0, seed=seed, max_new_tokens=length)
            for seed in range(seeds)
        ],
    )

    for position in range(length):
        counts = Counter(answer.tokens.token_ids[position] for answer in answers)
        assert set(b"abc") == set(counts)
        assert chi_square(counts, TARGET.probabilities) < CRITICAL


def test_b04_residual_is_divided_by_its_sum():
    """B04: a residual made by softmax gives mass to tokens that have none.

    10 000 tokens after the first, whose law looks at no history: as many independent rounds.
    """
    model = staged(fixed(a=0.5, b=0.5), drafts={"draft": FollowLaw(fixed(a=0.9, b=0.1))})
    answers = played(
        model,
        [
            asked("x", "draft", 1, temperature=1.0, seed=seed, max_new_tokens=501)
            for seed in range(20)
        ],
    )
    counts = Counter(token for answer in answers for token in answer.tokens.token_ids[1:])

    assert set(b"ab") == set(counts)
    assert 10_000 == counts.total()
    assert 0.5 == pytest.approx(counts[ord("a")] / 10_000, abs=0.02)
    judged = sum(answer.finished.statistics.judged_tokens for answer in answers)
    accepted = sum(answer.finished.statistics.accepted_tokens for answer in answers)
    assert 1_000 < judged - accepted


# Letters, and the bytes of characters of two and three bytes: text is cut inside them.
SYLLABLES = HashLaw((*b"abc ", *"é日".encode()), candidates=8)
KEPT = {"temperature": 0.8, "top_k": 4, "top_p": 0.9, "min_p": 0.05}


def kept_tokens(history: Sequence[int]) -> set[int]:
    """Return what the settings leave of the law's own candidates, by their definitions."""
    weights = {t: math.exp(logit / 0.8) for t, logit in SYLLABLES.logits(tuple(history))}
    least = sorted(weights.values(), reverse=True)[:4][-1]
    weights = {token: weight for token, weight in weights.items() if weight >= least}
    total, reached, kept = sum(weights.values()), 0.0, {}
    for token, weight in sorted(weights.items(), key=lambda pair: (-pair[1], pair[0])):
        if reached >= 0.9:
            break
        kept[token] = weight / total
        reached += weight / total
    return {token for token, mass in kept.items() if mass >= 0.05 * max(kept.values())}


@pytest.mark.asyncio
async def test_b05_a_rejection_loses_no_text_and_keeps_every_token_within_its_set():
    """B05: a rejection that is noticed a round late drops a word and keeps what followed it.

    Seeds 1 to 20, 200 tokens, five proposals a round. There is no prefix cache to vary. Every
    token is looked for in the set that the settings leave at its own prefix.
    """
    prompt = "once upon"
    async with served(staged(SYLLABLES)) as server:
        for seed in range(1, 21):
            message = asked(prompt, "own-law", 5, seed=seed, max_new_tokens=200, **KEPT)
            call = server.generation.StreamGenerate(StreamGenerateRequest(generation=message))
            _, *rounds, last = await exhausted(call)
            tokens = [token for each in rounds for token in each.round.tokens.token_ids]
            deltas = [event for each in rounds for event in each.round.events]

            assert 200 == len(tokens)
            decoded = bytes(tokens).decode(errors="replace")
            assert decoded == text_of([*deltas, *last.finished.events])
            for place, token in enumerate(tokens):
                assert token in kept_tokens((*prompt.encode(), *tokens[:place])), (seed, place)
            statistics = last.finished.statistics
            assert statistics.accepted_tokens < statistics.judged_tokens


@pytest.mark.asyncio
async def test_b05_sampled_stream_and_whole_answer_of_a_seed_are_one_text():
    """B05: streamed deltas, the unary text and the decoded ids agree."""
    message = asked("once", "own-law", 5, seed=3, max_new_tokens=64, **KEPT)
    async with served(staged(SYLLABLES)) as server:
        call = server.generation.StreamGenerate(StreamGenerateRequest(generation=message))
        _, *rounds, last = await exhausted(call)
        whole = await complete(server, message)

    events = [event for each in rounds for event in each.round.events]
    assert whole.text == text_of([*events, *last.finished.events])
    assert whole.text == bytes(tokens_of(whole)).decode(errors="replace")
