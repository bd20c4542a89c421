"""Speculation changes nothing: its output is the target's own, token for token."""

import pytest

from tests.model.drafts import SCRIPT, KnowingProposer
from tests.model.lanes import Job, decode

pytestmark = [pytest.mark.model, pytest.mark.slow, pytest.mark.timeout(1200)]

WIDTHS = range(1, 9)


@pytest.fixture
def lookup(model):
    """The prompt lookup that the server would use."""
    (loaded,) = model.proposers
    return loaded.proposer


def outputs(model, jobs, lanes):
    """Return what the jobs say; none may fail."""
    ended = decode(model.target, jobs, lanes, model.eos_token_ids)
    assert {None} == {terminal.error for terminal in ended}
    return tuple(terminal.tokens for terminal in ended)


def test_prompts_are_more_than_a_hundred(prompts) -> None:
    assert 100 <= len(set(prompts))


def test_eight_plain_lanes_say_what_the_target_alone_says(model, prompts, alone) -> None:
    """Batching changes nothing, whoever joins and leaves meanwhile."""
    assert alone == outputs(model, [Job(prompt) for prompt in prompts], 8)


@pytest.mark.parametrize("lanes", [1, 8])
def test_blocks_of_every_width_and_outcome_change_nothing(lanes, model, prompts, alone) -> None:
    """Of 1 to 8 proposals each place is the first wrong one, and none is."""
    proposer = KnowingProposer(dict(zip(prompts, alone, strict=True)))

    assert alone == outputs(model, [Job(prompt, proposer) for prompt in prompts], lanes)
    assert set(SCRIPT) == set(proposer.outcomes)


def test_prompt_lookup_of_fixed_widths_changes_nothing(lookup, model, prompts, alone) -> None:
    """Eight lanes of eight widths side by side, their guesses right and wrong as they come."""
    jobs = [
        Job(prompt, lookup, width=WIDTHS[index % len(WIDTHS)], fixed_width=True)
        for index, prompt in enumerate(prompts)
    ]

    assert alone == outputs(model, jobs, 8)


def test_prompt_lookup_that_adapts_changes_nothing(lookup, model, prompts, alone) -> None:
    """Eight lanes, their widths from the measured cost curve."""
    assert alone == outputs(model, [Job(prompt, lookup) for prompt in prompts], 8)
