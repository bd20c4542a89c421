"""Penalties within a block: each position counts what precedes it, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from engines.scripted.law import Logits
from tests.cases.asking import LOOKUP, NONE, asked, one, output_of, tokens_of
from tests.cases.stage import staged, tiny

LOOP = tuple(b"abcd")


@dataclass(frozen=True, slots=True)
class LoopLaw:
    """Goes round four letters for ever; each has a rival that a small penalty lets through."""

    def logits(self, history: Sequence[int]) -> Logits:
        place = LOOP.index(history[-1]) if history[-1] in LOOP else history[-1] % 4
        following = LOOP[(place + 1) % 4]
        rival = ord("A") + (place + len(history)) % 8
        return tuple(sorted({rival: 2.0, following: 2.4, ord("z"): 0.0}.items()))


PENALTIES = {
    "frequency": {"frequency_penalty": 0.5},
    "presence": {"presence_penalty": 0.5},
    "repetition": {"repetition_penalty": 1.3},
    "all": {"frequency_penalty": 0.5, "presence_penalty": 0.5, "repetition_penalty": 1.3},
}
MODELS = {"loop": lambda: staged(LoopLaw()), "tiny": tiny}
PROPOSERS = {"loop": (LOOKUP, "right", "mostly-right", "wrong"), "tiny": (LOOKUP, "draft")}


@pytest.mark.parametrize("engine", MODELS)
@pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES.keys())
def test_b26_penalties_count_every_token_of_a_block_once(penalty, engine):
    """B26: only the last token of a block is counted, or one twice, or a rejected one stays.

    A prompt that loops; the output is that of plain decoding with the penalty, and another than
    without it.
    """
    model = MODELS[engine]()
    settings = {"temperature": 0.0, "max_new_tokens": 80, "stop_on_eos": False}
    prompt = "abcd" * 6
    free = one(model, asked(prompt, NONE, **settings))
    plain = one(model, asked(prompt, NONE, **settings, **penalty))
    assert tokens_of(free) != tokens_of(plain)
    for proposer in PROPOSERS[engine]:
        fast = one(model, asked(prompt, proposer, 4, **settings, **penalty))
        assert output_of(plain) == output_of(fast), proposer
        assert fast.finished.statistics.judged_tokens, proposer
