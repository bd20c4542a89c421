"""Mirostat holds the surprise, also where proposals are rejected."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from engines.scripted.law import Logits
from outrider.v1 import settings_pb2
from tests.cases.asking import NONE, asked, one, played
from tests.cases.stage import staged

RANKS = 64
TAU = 3.0
MIROSTAT = settings_pb2.MirostatSettings(version=2, tau=TAU, eta=0.1)


@dataclass(frozen=True, slots=True)
class ZipfLaw:
    """Many tokens with a long tail; the history turns which of them has which rank."""

    power: float = 0.3

    def logits(self, history: Sequence[int]) -> Logits:
        turn = sum(history[-2:]) % RANKS
        likeliness = [-self.power * math.log1p(rank) for rank in range(RANKS)]
        return tuple((token, likeliness[(token - turn) % RANKS]) for token in range(RANKS))


def surprises(answer) -> list[float]:
    """Return the surprise of each token in bits, under the distribution it was drawn from."""
    return [-value / math.log(2.0) for value in answer.tokens.logprobs]


@pytest.mark.parametrize(
    ("proposer", "version"),
    [(NONE, 2), ("own-law", 2), ("mostly-right", 2), ("lookup", 2), (NONE, 1), ("own-law", 1)],
)
def test_b28_surprise_is_held_with_and_without_speculation(proposer, version):
    """B28: the state is not carried from token to token, or not taken back after a rejection.

    tau 3, eta 0.1, seed 5, 500 tokens; 3.0 ± 0.5 bits over the last 400.
    """
    mirostat = settings_pb2.MirostatSettings(version=version, tau=TAU, eta=0.1)
    width = None if proposer == NONE else 4
    settings = {"temperature": 1.0, "seed": 5, "max_new_tokens": 500, "logprobs": 0}
    answer = one(staged(ZipfLaw()), asked("once", proposer, width, mirostat=mirostat, **settings))

    last = surprises(answer)[-400:]
    assert 400 == len(last)
    assert pytest.approx(sum(last) / 400, abs=0.5) == TAU
    if width:
        statistics = answer.finished.statistics
        assert statistics.accepted_tokens < statistics.judged_tokens


def ranks_of(answer) -> Counter[int]:
    """Return how often each octave of ranks was drawn: 0, 1-2, 3-6 and so on."""
    history, octaves = tuple(b"once"), Counter()
    for token in answer.tokens.token_ids:
        octaves[((token - sum(history[-2:])) % RANKS + 1).bit_length()] += 1
        history = (*history, token)
    return octaves


CRITICAL = 27.9
"""What chi-square with six degrees of freedom exceeds once in ten thousand times."""


def test_b28_ranks_are_drawn_alike_with_and_without_speculation():
    """B28: state that a rejected proposal leaves behind would shift the whole distribution."""
    settings = {"temperature": 1.0, "max_new_tokens": 60, "mirostat": MIROSTAT}
    model, drawn = staged(ZipfLaw()), []
    for proposer, width, first in ((NONE, None, 0), ("own-law", 4, 100)):
        seeds = range(first, first + 20)
        messages = [asked("once", proposer, width, seed=seed, **settings) for seed in seeds]
        drawn.append(sum(map(ranks_of, played(model, messages)), Counter()))

    plain, fast = drawn
    assert plain.total() == fast.total() == 1200
    differences = [(plain[o] - fast[o]) ** 2 / (plain[o] + fast[o]) for o in plain | fast]
    assert sum(differences) < CRITICAL


def test_b28_mirostat_replaces_the_truncations_as_the_contract_says():
    """B28: together with top-k and top-p it has the documented precedence, not a crash."""
    settings = {"temperature": 1.0, "seed": 5, "max_new_tokens": 100, "mirostat": MIROSTAT}
    model = staged(ZipfLaw())
    alone, beside = played(
        model, [asked("once", "own-law", 4, **settings, **more) for more in ({}, TRUNCATIONS)]
    )

    assert alone.tokens == beside.tokens


TRUNCATIONS = {"top_k": 1, "top_p": 0.1, "min_p": 0.9, "top_a": 1.0, "typical_p": 0.1}
