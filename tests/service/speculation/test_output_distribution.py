"""Sampled output follows the target's distribution, whatever the draft believes.

Chi-square over all outputs of three tokens, at a significance of one in a
million and with fixed seeds: the tests repeat one computation exactly.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product

import pytest

from engines.scripted.law import HashLaw
from engines.scripted.model import ScriptedSettings, scripted_proposer, scripted_target
from engines.scripted.rules import DraftRule, FollowLaw, FollowTarget
from engines.scripted.sampling import ScriptedSampler
from engines.scripted.vocabulary import VOCABULARY_SIZE
from service.speculation.contract import History, SamplingInput, Tokens
from service.speculation.options import SchedulerOptions
from tests.scenarios.driver import GREEDY, Plan, TableDriver

LETTERS = tuple(b"abc")
LAW = HashLaw(LETTERS, candidates=6)
SAMPLED = replace(GREEDY, do_sample=True, temperature=1.0)
PROMPT = tuple(b"once")
LENGTH = 3
REQUESTS = 1500
# The chi-square value that 26 degrees of freedom exceed with probability 1e-6.
LIMIT = 78.0
RULES: dict[str, DraftRule] = {
    "one-hot": FollowTarget(LAW, (True, False)),
    "own-law": FollowLaw(HashLaw(LETTERS, candidates=6, key=b"draft")),
}


def probability(output: Tokens, sampler: ScriptedSampler) -> float:
    """Return the target's own probability of an output."""
    result = 1.0
    for place, token in enumerate(output):
        history = History(PROMPT, output[:place])
        row = sampler.process(LAW.logits((*PROMPT, *output[:place])), history)
        result *= row.probability(token)
    return result


def outputs(rule: DraftRule) -> Counter[Tokens]:
    """Sample many requests, eight at a time and with lookahead, and count their outputs."""
    settings = ScriptedSettings(law=LAW, is_synchronous=False)
    driver = TableDriver(scripted_target(settings), SchedulerOptions())
    proposer = scripted_proposer("draft", rule)
    for seed in range(REQUESTS):
        plan = Plan(str(seed), PROMPT, LENGTH, proposer, width=2, config=SAMPLED, seed=seed)
        driver.submit(plan)
    return Counter(play.tokens for play in driver.run().values())


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())
def test_sampled_outputs_follow_the_targets_distribution(rule) -> None:
    counts = outputs(rule)

    sampler = ScriptedSampler(SamplingInput(SAMPLED, PROMPT, VOCABULARY_SIZE))
    cells = list(product(LETTERS, repeat=LENGTH))
    expected = {cell: REQUESTS * probability(cell, sampler) for cell in cells}
    assert sum(expected.values()) == pytest.approx(REQUESTS)
    assert {cell for cell in counts if not expected[cell]} == set()
    chi_square = sum(
        (counts[cell] - mean) ** 2 / mean for cell, mean in expected.items() if mean > 0.0
    )
    assert chi_square < LIMIT
