"""Prompt lookup: what it copies, how wide, and what it remembers."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.proposers.prompt_lookup.proposer import PromptLookup
from engines.sampling.one_hot import OneHot
from service.errors import UnknownSlot
from service.speculation.contract import DraftBlock
from service.speculation.cost import CostCurve
from tests.contract.constraints import Outputs
from tests.engines.proposers.requests import (
    Completing,
    commit_of,
    constrained,
    draft_request,
)

FLAT = CostCurve.from_points({(1, 1): 10.0, (1, 2): 10.1, (8, 1): 20.0, (8, 2): 20.1})
STEEP = CostCurve.from_points({(1, 1): 10.0, (1, 2): 18.0})
MEASURED = CostCurve.from_points(
    {(1, 1): 9.7, (1, 5): 16.4, (1, 9): 22.0, (8, 1): 21.5, (8, 5): 60.0, (8, 9): 100.0}
)
COPY = (1, 2, 3, 4, 5, 6, 7, 8, 9, 0)


def lookup(curve: CostCurve = FLAT, prompt=COPY, slots: int = 1) -> PromptLookup:
    proposer = PromptLookup(curve)
    for slot in range(slots):
        proposer.open(slot, prompt)
    return proposer


def drafted(proposer: PromptLookup, request, pass_lanes: int = 1) -> tuple[int, ...]:
    (block,) = proposer.draft([request], pass_lanes)
    return () if block is None else block.tokens


def test_block_copies_what_followed_before() -> None:
    (block,) = lookup().draft([draft_request(COPY, (2, 3, 4))], 1)

    assert (5, 6, 7, 8) == block.tokens
    assert [OneHot(token) for token in block.tokens] == [p.distribution for p in block.proposals]


def test_copy_runs_on_into_what_it_proposes() -> None:
    """A text with a short period is continued beyond its end."""
    prompt = (7, 1, 2, 1, 2)

    assert (2, 1, 2, 1, 2, 1) == drafted(lookup(prompt=prompt), draft_request(prompt, (1,), 6))


@pytest.mark.parametrize("prompt", [(), (1,), (1, 2), (1, 2, 3)])
def test_text_without_repetition_is_a_plain_step(prompt) -> None:
    """B11: tiny prompts draft nothing and are no error."""
    assert () == drafted(lookup(prompt=prompt), draft_request(prompt, (9,)))


def test_block_stops_after_an_end_token() -> None:
    assert (5, 6) == drafted(lookup(), draft_request(COPY, (3, 4), ends=frozenset({6})))


def test_block_stops_where_a_grammar_is_complete() -> None:
    sampler = Completing(complete=(3, 4, 5, 6))

    assert (5, 6) == drafted(lookup(), draft_request(COPY, (3, 4), sampler=sampler))


def test_block_ends_before_a_token_that_may_not_follow() -> None:
    """B31: the rows of tokens that a grammar or a setting forbids would be for nothing."""
    grammar = Outputs(((2, 3, 4, 5, 6, 1), (2, 3, 4, 5, 9)), 10)

    drawn = drafted(lookup(), draft_request(COPY, (2, 3, 4), sampler=constrained(grammar)))

    assert (5, 6) == drawn


def test_block_of_a_grammar_ends_with_it() -> None:
    """B31: nothing is copied from behind its end."""
    grammar = Outputs(((2, 3, 4, 5, 6),), 10)

    drawn = drafted(lookup(), draft_request(COPY, (2, 3, 4), sampler=constrained(grammar)))

    assert (5, 6) == drawn


def test_constrained_branch_continues_as_a_committed_block_would() -> None:
    """A fixed block of a grammar does not depend on where the lane's state stands."""
    grammar = Outputs(((2, 3, 4, 5, 6, 7, 1),), 10)
    behind = constrained(grammar)
    ahead = behind
    for token in (2, 3, 4, 5, 6):
        ahead = ahead.advance(OneHot(token), token)

    request = [draft_request(COPY, (2, 3, 4, 5, 6), sampler=sampler) for sampler in (behind, ahead)]

    assert [(7,), (7,)] == [drafted(lookup(), one) for one in request]


def test_width_grows_with_the_match() -> None:
    """On a measured curve a longer match is worth more rows."""
    prompt = (*range(1, 40), 0)
    request = [
        draft_request(prompt, prompt[20 - length : 20], 15, fixed=False)
        for length in (1, 2, 4, 8, 16)
    ]

    widths = [len(drafted(lookup(MEASURED, prompt), one)) for one in request]

    assert widths == sorted(widths)
    assert widths[0] < 2
    assert widths[-1] >= 8


def test_width_shrinks_with_the_cost_of_a_row() -> None:
    request = draft_request(COPY, (2, 3, 4), 15, fixed=False)

    widths = [len(drafted(lookup(curve), request)) for curve in (FLAT, MEASURED, STEEP)]

    assert widths[0] > widths[1] > widths[2] == 0


def test_width_shrinks_in_a_pass_of_many_plain_lanes() -> None:
    """A wide lane pads all the others, on the curve of that many lanes."""
    request = draft_request(COPY, (2, 3, 4), 15, fixed=False)

    assert 2 <= len(drafted(lookup(MEASURED), request, 1))
    assert 0 == len(drafted(lookup(MEASURED), request, 8))


def test_fixed_width_ignores_cost_pass_and_other_lanes() -> None:
    request = draft_request(COPY, (2, 3, 4), 4)
    other = draft_request(COPY, (1,), 4, slot=1, fixed=False)

    alone = drafted(lookup(FLAT), request)
    (beside, _) = lookup(STEEP, slots=2).draft([request, other], 8)

    assert (5, 6, 7, 8) == alone == beside.tokens


def test_fixed_width_still_needs_a_likely_guess() -> None:
    """One token seen once before is not worth a row, whatever the width."""
    assert () == drafted(lookup(), draft_request(COPY, (9, 4)))


def test_other_lanes_may_fill_the_width_of_a_fixed_one() -> None:
    """Its rows are padded for them anyway."""
    fixed = draft_request(COPY, (2, 3, 4), 3)
    adaptive = draft_request(COPY, (1, 2, 3), 9, slot=1, fixed=False)

    alone = drafted(lookup(STEEP, slots=2), adaptive)
    _, beside = lookup(STEEP, slots=2).draft([fixed, adaptive], 2)

    assert () == alone
    assert (4, 5, 6) == beside.tokens


TEXT = st.lists(st.integers(0, 3), min_size=1, max_size=40).map(tuple)


@given(prompt=TEXT, output=TEXT, cuts=st.randoms(use_true_random=False))
def test_lane_that_followed_its_commits_drafts_as_a_fresh_one(prompt, output, cuts) -> None:
    """However rounds cut the output, and whatever was drafted in between."""
    proposer, done = lookup(prompt=prompt), 0
    while done < len(output):
        step = cuts.randint(1, 5)
        committed, done = output[done : done + step], min(done + step, len(output))
        generated = output[:done]
        assert [None] == proposer.commit([commit_of(prompt, generated, committed)])
        if cuts.random() < 0.5:
            request = draft_request(prompt, generated, 5)
            assert drafted(lookup(prompt=prompt), request) == drafted(proposer, request)


@given(prompt=TEXT, output=TEXT, width=st.integers(1, 6), more=st.integers(1, 6))
def test_branch_continues_as_a_committed_block_would(prompt, output, width, more) -> None:
    """A fixed block does not depend on where a branch began, and a branch leaves no trace."""
    proposer = lookup(prompt=prompt)
    (block,) = proposer.draft([draft_request(prompt, output, width)], 1)
    if block is None:
        return
    generated = output + block.tokens

    branch = drafted(proposer, draft_request(prompt, generated, more, state=block.state))

    assert drafted(lookup(prompt=prompt), draft_request(prompt, generated, more)) == branch
    assert block.tokens == drafted(proposer, draft_request(prompt, output, width))


def test_lanes_do_not_see_each_other() -> None:
    proposer = PromptLookup(FLAT)
    prompts = [COPY, COPY[::-1], (4,) * 9]
    for slot, prompt in enumerate(prompts):
        proposer.open(slot, prompt)
    requests = [draft_request(prompt, (3, 4), slot=slot) for slot, prompt in enumerate(prompts)]

    drawn = proposer.draft(requests, 3)

    assert [(5, 6, 7, 8), None, (4, 4, 4, 4)] == [block and block.tokens for block in drawn]


def test_close_forgets_the_lane() -> None:
    proposer = lookup()
    drafted(proposer, draft_request(COPY, (2, 3, 4)))
    proposer.close(0)
    proposer.close(0)

    (unopened,) = proposer.draft([draft_request(COPY, (2, 3, 4))], 1)
    (uncommitted,) = proposer.commit([commit_of(COPY, (2,), (2,))])
    proposer.open(0, (6, 5))

    assert isinstance(unopened, UnknownSlot)
    assert isinstance(uncommitted, UnknownSlot)
    assert () == drafted(proposer, draft_request((6, 5), (2, 3, 4)))


def test_prompt_of_a_whole_context_is_indexed() -> None:
    """Long prompts are looked up as a whole: what was copied is right at their start."""
    choices = random.Random(5)
    prompt = tuple(choices.randrange(5000) for _ in range(8192))
    proposer = lookup(prompt=prompt)

    block = proposer.draft([draft_request(prompt, prompt[:6], 8)], 1)[0]

    assert isinstance(block, DraftBlock)
    assert prompt[6:14] == block.tokens
