"""Branches: drafted on from a block that is being verified, and dropped or promoted."""

from __future__ import annotations

import pytest

from service.speculation.contract import DraftBlock
from tests.contract.drafts import DraftLane, open_draft, replayed


@pytest.fixture
def lane(drafter) -> DraftLane:
    """A lane of each proposer that can branch, behind its prefill."""
    proposer = drafter.build()
    if not proposer.traits.can_branch:
        pytest.skip("it cannot branch")
    return open_draft(drafter, proposer)


def branched(lane: DraftLane, width: int = 3) -> tuple[DraftBlock, DraftBlock]:
    """Draft a block, and a branch behind it."""
    block = lane.draft(lane.request(width))
    branch = lane.draft(lane.request(width, after=block))
    assert isinstance(block, DraftBlock)
    assert isinstance(branch, DraftBlock)
    return block, branch


def test_branch_leaves_the_canonical_state_alone(lane) -> None:
    before = lane.content(lane.draft())

    branched(lane)

    assert before == lane.content(lane.draft())


def test_branch_continues_as_one_longer_block_would(lane) -> None:
    """The distributions behind a block do not depend on where the block was cut."""
    block, branch = branched(lane)

    whole = lane.draft(lane.request(6))

    assert lane.content(whole) == lane.content(block) + lane.content(branch)


def test_branch_that_is_dropped_leaves_no_trace(lane) -> None:
    block, _ = branched(lane)
    lane.settle(block.tokens[0], 29, block=block, accepted=1)

    fresh = replayed(lane)

    assert lane.content(fresh.draft()) == lane.content(lane.draft())


def test_branch_that_is_promoted_leads_to_the_same_drafts(lane) -> None:
    """The bonus matches the branch's first token; the rest is the next block."""
    block, branch = branched(lane)
    lane.settle(*block.tokens, branch.tokens[0], accepted=len(block.proposals))
    promoted = DraftBlock(branch.state, branch.proposals[1:])

    accepted = promoted.tokens[:1]
    lane.settle(*accepted, 28, block=promoted, accepted=1)

    fresh = replayed(lane)
    assert lane.content(fresh.draft()) == lane.content(lane.draft())


def test_promoted_block_can_be_extended(lane) -> None:
    """A promoted block is one token short of its width, and grows by what follows it."""
    block, branch = branched(lane)
    lane.settle(*block.tokens, branch.tokens[0], accepted=len(block.proposals))
    promoted = DraftBlock(branch.state, branch.proposals[1:])

    extension = lane.draft(lane.request(2, after=promoted))

    fresh = replayed(lane)
    whole = fresh.draft(fresh.request(4))
    assert lane.content(whole) == lane.content(promoted) + lane.content(extension)


def test_branches_of_several_lanes_do_not_meet(drafter, lane) -> None:
    other = open_draft(drafter, lane.proposer, 1, prompt=(9, 8, 7, 9, 8, 7, 9, 8, 7, 4, 4))
    block, branch = branched(lane)
    theirs = other.draft(other.request(2))
    requests = [lane.request(3, after=block)]
    if isinstance(theirs, DraftBlock):
        requests.append(other.request(3, after=theirs))

    drawn = lane.proposer.draft(requests, 2)

    assert lane.content(branch) == lane.content(drawn[0])
