"""Speculation changes nothing: its output is the target's own, token for token."""

import pytest

from engines.onnx.cost import cost_curve
from engines.proposers.prompt_lookup.proposer import PromptLookup
from tests.model.drafts import SCRIPT, KnowingProposer
from tests.model.lanes import Job, decode
from tests.model.loaded import THREADS

pytestmark = [pytest.mark.model, pytest.mark.slow, pytest.mark.timeout(1200)]

WIDTHS = range(1, 9)


@pytest.fixture(scope="module")
def lookup(model) -> PromptLookup:
    return PromptLookup(cost_curve(model.bundle, model.decoder, THREADS))


def said(ended) -> list[tuple[int, ...]]:
    """Return the outputs of requests that ended well."""
    assert {None} == {terminal.error for terminal in ended}
    return [terminal.tokens for terminal in ended]


def test_prompts_are_more_than_a_hundred(prompts) -> None:
    assert 100 <= len(set(prompts))


def test_eight_plain_lanes_say_what_the_target_alone_says(model, target, prompts, alone) -> None:
    """Batching changes nothing, whoever joins and leaves meanwhile."""
    ended = decode(target, [Job(prompt) for prompt in prompts], 8, model.ends)

    assert list(alone) == said(ended)


@pytest.mark.parametrize("lanes", [1, 8])
def test_speculation_of_every_width_and_outcome_says_the_same(
    lanes, model, target, prompts, alone
) -> None:
    """Blocks of 1 to 8 proposals, each rejected at every place and accepted whole."""
    proposer = KnowingProposer(dict(zip(prompts, alone, strict=True)))

    ended = decode(target, [Job(prompt, proposer) for prompt in prompts], lanes, model.ends)

    assert list(alone) == said(ended)
    assert set(SCRIPT) == set(proposer.outcomes)


@pytest.mark.parametrize("lanes", [1, 8])
def test_prompt_lookup_of_each_fixed_width_says_the_same(
    lanes, lookup, model, target, prompts, alone
) -> None:
    """Lanes of all widths side by side, the proposer's guesses right and wrong as they come."""
    jobs = [
        Job(prompt, lookup, width=WIDTHS[index % len(WIDTHS)], fixed_width=True)
        for index, prompt in enumerate(prompts)
    ]

    ended = decode(target, jobs, lanes, model.ends)

    assert list(alone) == said(ended)
    judged = sum(terminal.statistics.judged_tokens for terminal in ended)
    accepted = sum(terminal.statistics.accepted_tokens for terminal in ended)
    assert 0 < accepted < judged


def test_prompt_lookup_that_adapts_says_the_same(lookup, model, target, prompts, alone) -> None:
    """Widths from the measured cost curve."""
    ended = decode(target, [Job(prompt, lookup) for prompt in prompts], 8, model.ends)

    assert list(alone) == said(ended)
