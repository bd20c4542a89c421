"""Speculative sampling follows the target's distribution, whatever the draft believes.

Chi-square statistics are held against the critical value at one in ten
thousand, on fixed seeds.
"""

from __future__ import annotations

import itertools
from collections import Counter
from functools import cache

import numpy as np
import pytest

from engines.sampling.dry import Dry
from engines.sampling.following import Following
from engines.sampling.kept import Kept
from engines.sampling.mirostat import Mirostat
from engines.sampling.one_hot import OneHot
from engines.sampling.permission import Permission
from engines.sampling.row_sampler import RowSampler
from engines.sampling.rows import LaneSpan, rows_of
from engines.sampling.truncation import Truncation
from engines.sampling.xtc import Xtc
from service.generation.randomness import AddressedRandomness, randomness_from_seed
from service.speculation.contract import History, Proposal
from service.speculation.policy import Accept, choose, judge
from tests.contract.constraints import Outputs

# By degrees of freedom, at a significance of 1e-4.
CRITICAL = {1: 15.14, 2: 18.42, 3: 21.11, 4: 23.51, 5: 25.74, 6: 27.86, 7: 29.88, 8: 31.83}


def kept(*weights: float) -> Kept:
    return Kept.of_weights(np.arange(len(weights)), np.array(weights))


def chi_square(counts: Counter[int], probabilities, total: int) -> float:
    return sum(
        (counts[token] - total * probability) ** 2 / (total * probability)
        for token, probability in enumerate(probabilities)
        if probability
    )


def one_token(target, draft, seed: int) -> int:
    """Return the first token of a round of one proposal."""
    randomness = randomness_from_seed(seed, 1.0)
    proposed = draft.sample(randomness.draft.at(0))
    decision, _ = judge(target, Proposal(proposed, draft), randomness.target)
    return proposed if isinstance(decision, Accept) else decision.replacement


@pytest.mark.parametrize(
    ("target", "draft"),
    [
        ((0.5, 0.3, 0.2), (0.2, 0.3, 0.5)),
        ((0.5, 0.3, 0.2), (0.5, 0.3, 0.2)),
        ((0.5, 0.3, 0.2), (1.0, 0.0, 0.0)),
        ((0.5, 0.3, 0.2), (0.0, 0.0, 1.0)),
        ((0.05, 0.9, 0.05), (0.45, 0.1, 0.45)),
    ],
)
def test_one_token_follows_the_target(target, draft) -> None:
    """B02: three ids at their own frequencies, over two thousand seeds."""
    counts = Counter(one_token(kept(*target), kept(*draft), seed) for seed in range(2000))

    assert chi_square(counts, target, 2000) < CRITICAL[2]


def test_one_token_of_a_certain_draft_follows_the_target() -> None:
    """A draft without a distribution hands over certainty, and the residual leaves it out."""
    target = (0.5, 0.3, 0.2)
    counts = Counter(one_token(kept(*target), OneHot(1), seed) for seed in range(2000))

    assert chi_square(counts, target, 2000) < CRITICAL[2]


def test_token_without_target_probability_is_never_chosen() -> None:
    """B04: a softened residual would choose it in eleven of a hundred rounds."""
    counts = Counter(
        one_token(kept(0.5, 0.5, 0.0), kept(0.9, 0.1, 0.0), seed) for seed in range(10_000)
    )

    assert 0 == counts[2]
    assert 0.5 == pytest.approx(counts[0] / 10_000, abs=0.02)


def test_token_that_only_the_draft_allows_is_never_chosen() -> None:
    counts = Counter(
        one_token(kept(0.5, 0.5, 0.0), kept(0.1, 0.1, 0.8), seed) for seed in range(2000)
    )

    assert 0 == counts[2]
    assert chi_square(counts, (0.5, 0.5), 2000) < CRITICAL[1]


TARGET_LOGITS = np.random.default_rng(11).normal(0, 1.5, (4, 3)).astype(np.float32)
DRAFT_LOGITS = np.random.default_rng(12).normal(0, 1.5, (4, 3)).astype(np.float32)
ENDLESS = Outputs(tuple(itertools.product(range(3), range(2), (1, 2), range(3), range(3))), 9)
SAMPLERS = {
    "whole": RowSampler(1.0),
    "hot": RowSampler(1.7),
    "top-k": RowSampler(1.0, truncation=Truncation(top_k=2)),
    "top-p": RowSampler(0.9, truncation=Truncation(top_p=0.8)),
    "min-p": RowSampler(1.0, truncation=Truncation(min_p=0.2)),
    "typical-p": RowSampler(1.0, truncation=Truncation(typical_p=0.7)),
    "hot at last": RowSampler(2.0, truncation=Truncation(top_p=0.8), temperature_last=True),
    "mirostat": RowSampler(1.0, truncation=Mirostat(2, 0.5, 1.0, 1.5)),
    "xtc": RowSampler(1.0, xtc=Xtc(0.5, 0.2, AddressedRandomness(b"verification"))),
    "dry": RowSampler(1.0, (Dry(1.0, 2.0, 1, -1),)),
    "constrained": RowSampler(1.0, permission=Permission(3, following=Following(ENDLESS))),
}


def row_after(logits: np.ndarray, tokens) -> np.ndarray:
    """Return the toy model's row: it depends on the last token only."""
    return logits[tokens[-1] if tokens else 3]


@cache
def drafted(sampler: RowSampler, assumed: tuple[int, ...]) -> Kept:
    """Return what the draft draws from; the same few histories come again and again."""
    return sampler.distribution(row_after(DRAFT_LOGITS, assumed), History((), assumed))


def two_tokens(sampler: RowSampler, seed: int) -> tuple[int, int]:
    """Return the first two tokens of an output whose blocks have two proposals."""
    randomness = randomness_from_seed(seed, 1.0)
    stream, output = randomness.target, ()
    while len(output) < 2:
        block = []
        for offset in range(2):
            assumed = (*output, *(proposal.token for proposal in block))
            draft = drafted(sampler, assumed)
            draw = randomness.draft.at(len(output) + offset)
            block.append(Proposal(draft.sample(draw), draft))
        tokens = tuple(proposal.token for proposal in block)
        values = np.stack([row_after(TARGET_LOGITS, output + tokens[:row]) for row in range(3)])
        (rows,) = rows_of([LaneSpan(0, sampler, History((), output), tokens)], values)
        for row, proposal in enumerate(block):
            target = rows.distribution(row, sampler)
            decision, stream = judge(target, proposal, stream)
            accepted = isinstance(decision, Accept)
            token = proposal.token if accepted else decision.replacement
            output, sampler = (*output, token), sampler.advance(target, token)
            if not accepted:
                break
        else:
            target = rows.distribution(2, sampler)
            bonus, stream = choose(target, stream)
            output, sampler = (*output, bonus), sampler.advance(target, bonus)
    return output[0], output[1]


@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS.keys())
def test_two_tokens_follow_the_target(sampler) -> None:
    """B02: both positions jointly, under each setting, applied to target and draft alike."""
    pairs = 2000
    counts = Counter(
        3 * first + second for first, second in (two_tokens(sampler, s) for s in range(pairs))
    )

    expected = []
    head = sampler.distribution(row_after(TARGET_LOGITS, ()), History((), ()))
    for first in range(3):
        if not head.probability(first):
            expected += [0.0] * 3
            continue
        after = sampler.advance(head, first)
        tail = after.distribution(row_after(TARGET_LOGITS, (first,)), History((), (first,)))
        expected += [head.probability(first) * tail.probability(t) for t in range(3)]
    assert {pair for pair in counts if expected[pair] == 0.0} == set()
    freedom = sum(probability > 0.0 for probability in expected) - 1
    assert chi_square(counts, expected, pairs) < CRITICAL[freedom]
