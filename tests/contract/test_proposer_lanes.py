"""Proposer lanes: each follows its own commits, and nothing else."""

from __future__ import annotations

import random

import pytest

from service.errors import OutriderError
from service.speculation.contract import DraftBlock
from tests.contract.drafts import DraftLane, open_draft, replayed

OTHER_PROMPT = (9, 8, 7, 9, 8, 7, 9, 8)


@pytest.fixture
def lane(drafter) -> DraftLane:
    """A lane of each proposer, behind its prefill."""
    return open_draft(drafter, drafter.build())


def assert_as_fresh(lane: DraftLane) -> None:
    """Compare with a proposer that never saw a proposal judged."""
    fresh = replayed(lane)
    for width in (1, 4):
        expected = fresh.draft(fresh.request(width))
        assert lane.content(expected) == lane.content(lane.draft(lane.request(width)))


def test_draft_twice_gives_the_same_block(lane) -> None:
    """Drafting is not committing."""
    assert lane.content(lane.draft()) == lane.content(lane.draft())


def test_draft_of_a_fixed_width_ignores_the_pass(lane) -> None:
    """How many lanes the verification will carry may change widths, not a fixed one."""
    alone = lane.content(lane.draft(pass_lanes=1))

    assert alone == lane.content(lane.draft(pass_lanes=8))


def test_draft_beside_other_lanes_equals_alone(drafter, lane) -> None:
    alone = lane.content(lane.draft())
    others = [
        open_draft(drafter, lane.proposer, 1),
        open_draft(drafter, lane.proposer, 2, prompt=OTHER_PROMPT),
    ]
    requests = [others[1].request(7), lane.request(), others[0].request(1)]

    drawn = lane.proposer.draft(requests, 3)

    assert 3 == len(drawn)
    assert alone == lane.content(drawn[1])
    assert [
        lane.content(others[1].draft(requests[0])),
        lane.content(others[0].draft(requests[2])),
    ] == [
        lane.content(drawn[0]),
        lane.content(drawn[2]),
    ]


def test_commit_of_a_prefill_alone_is_followed(lane) -> None:
    assert_as_fresh(lane)


def test_commit_of_a_rejection_takes_back_what_was_drafted(lane) -> None:
    for accepted in (0, 1, 2):
        block = lane.draft(lane.request(4))
        replacement = 1 + (block.tokens[accepted] % 29)
        lane.settle(*block.tokens[:accepted], replacement, block=block, accepted=accepted)

        assert_as_fresh(lane)
        lane.settle(5)


def test_commit_of_a_full_acceptance_catches_up_with_the_last_proposal(lane) -> None:
    """The last proposal and the bonus were never fed to whoever proposed the block."""
    block = lane.draft()
    lane.settle(*block.tokens, 5, block=block, accepted=len(block.proposals))

    assert_as_fresh(lane)


def test_commit_of_plain_steps_is_followed(lane) -> None:
    for token in (5, 6, 1, 2):
        lane.settle(token)

        assert_as_fresh(lane)


@pytest.mark.parametrize("seed", range(4))
def test_commits_in_any_succession_lead_to_the_same_drafts(lane, seed) -> None:
    """Any mixture of rejections, full acceptance and plain steps is history, and no more."""
    choices = random.Random(seed)
    for _ in range(12):
        block = lane.draft(lane.request(choices.randrange(1, 6)))
        token = choices.randrange(1, 7)
        if not isinstance(block, DraftBlock) or choices.random() < 0.2:
            lane.settle(token)
        else:
            accepted = choices.randrange(len(block.proposals) + 1)
            lane.settle(*block.tokens[:accepted], token, block=block, accepted=accepted)
        assert_as_fresh(lane)


def test_close_forgets_the_lane(drafter, lane) -> None:
    """A slot's next lane begins with its own prompt."""
    lane.settle(1, 1, 1)
    lane.proposer.close(lane.slot)

    again = open_draft(drafter, lane.proposer, lane.slot, prompt=OTHER_PROMPT)

    assert_as_fresh(again)


def test_close_of_a_lane_that_is_not_open_does_nothing(lane) -> None:
    before = lane.content(lane.draft())

    lane.proposer.close(5)

    assert before == lane.content(lane.draft())


def test_draft_of_an_unknown_lane_is_that_lanes_error(drafter, lane) -> None:
    alone = lane.content(lane.draft())
    unknown = DraftLane(drafter, lane.proposer, 7, generated=lane.generated)

    error, block = lane.proposer.draft([unknown.request(), lane.request()], 2)

    assert isinstance(error, OutriderError)
    assert alone == lane.content(block)


def test_commit_to_an_unknown_lane_is_that_lanes_error(drafter, lane) -> None:
    unknown = DraftLane(drafter, lane.proposer, 7, generated=lane.generated)

    error, done = lane.proposer.commit([unknown.settled(5), lane.settled(5)])

    assert isinstance(error, OutriderError)
    assert done is None
    assert_as_fresh(lane)
