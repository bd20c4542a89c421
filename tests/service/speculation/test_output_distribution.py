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
from engines.scripted.target import ScriptedTarget
from engines.scripted.vocabulary import VOCABULARY_SIZE
from exactness.law import law_of
from exactness.statistics import SIGNIFICANCE, chi_square_p
from service.generation.config import ResolvedGenerationConfig
from service.generation.randomness import randomness_from_seed
from service.generation.sampling import (
    DrySettings,
    MirostatSettings,
    SamplerOrder,
    XtcSettings,
)
from service.speculation.contract import History, SamplingInput, Tokens
from service.speculation.options import SchedulerOptions
from tests.neutral import GREEDY
from tests.scenarios.driver import Plan, TableDriver

LETTERS = tuple(b"abc")
LAW = HashLaw(LETTERS, candidates=6)
SAMPLED = replace(GREEDY, do_sample=True, temperature=1.0)
PROMPT = tuple(b"once")
LENGTH = 3
REQUESTS = 1500
# The chi-square value that 26 degrees of freedom exceed with probability 1e-6.
LIMIT = 78.0
SETTINGS = {
    "truncated": replace(SAMPLED, temperature=1.5, top_p=0.8, min_p=0.2, top_a=0.3, typical_p=0.9),
    "temperature last": replace(
        SAMPLED, temperature=3.0, top_p=0.7, sampler_order=SamplerOrder.TEMPERATURE_LAST
    ),
    "penalties": replace(SAMPLED, frequency_penalty=1.0, presence_penalty=0.5, repeat_last_n=2),
    "DRY": replace(SAMPLED, dry=DrySettings(multiplier=1.0, allowed_length=1)),
    "XTC": replace(SAMPLED, xtc=XtcSettings(probability=0.6, threshold=0.1)),
    "Mirostat 1": replace(SAMPLED, mirostat=MirostatSettings(version=1, tau=0.8, eta=0.7)),
    "Mirostat 2": replace(SAMPLED, mirostat=MirostatSettings(version=2, tau=0.8, eta=0.7)),
}
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


def target() -> ScriptedTarget:
    """Return a target whose passes take time, so that drafting goes on beside them."""
    return scripted_target(ScriptedSettings(law=LAW, is_synchronous=False))


def outputs(
    rule: DraftRule, config: ResolvedGenerationConfig = SAMPLED, requests: int = REQUESTS
) -> Counter[Tokens]:
    """Sample many requests, eight at a time and with lookahead, and count their outputs."""
    driver = TableDriver(target(), SchedulerOptions())
    proposer = scripted_proposer("draft", rule)
    for seed in range(requests):
        plan = Plan(str(seed), PROMPT, LENGTH, proposer, width=2, config=config, seed=seed)
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


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())
@pytest.mark.parametrize("config", SETTINGS.values(), ids=SETTINGS.keys())
def test_outputs_follow_the_law_under_settings(config, rule) -> None:
    """States that move with committed tokens, and coins that fall by position, included."""
    coins = randomness_from_seed(0, 1.0).coins
    sampling = SamplingInput(config, PROMPT, VOCABULARY_SIZE, coins=coins)
    law = law_of(target(), sampling, LENGTH, LETTERS)

    assert sum(law.values()) == pytest.approx(1.0)
    assert chi_square_p(outputs(rule, config, 500), law) > SIGNIFICANCE
