"""What a block holds: never nothing, never too much, and each token with its probability."""

import math
from dataclasses import replace

import pytest

from service.speculation.contract import DraftBlock
from tests.contract.drafts import PROMPT, open_draft
from tests.neutral import SAMPLED

GREEDY = replace(SAMPLED, do_sample=False, temperature=0.0)
CONFIGS = {
    "greedy": GREEDY,
    "sampled": SAMPLED,
    "truncated": replace(SAMPLED, temperature=0.7, top_k=2, top_p=0.9, min_p=0.05),
}


@pytest.fixture(params=CONFIGS.values(), ids=CONFIGS.keys())
def lane(request, drafter):
    """A lane of each proposer, under each kind of sampling."""
    return open_draft(drafter, drafter.build(), config=request.param)


def blocks_along(lane, rounds: int = 12, **request):
    """Draft at many histories; the output goes on through a repetitive text."""
    for step in range(rounds):
        drawn = lane.draft(lane.request(**request))
        if drawn is not None:
            yield drawn
        lane.settle(PROMPT[(3 + 1 + step) % 6])


@pytest.mark.parametrize("width", range(1, 9))
def test_block_of_a_fixed_width_is_no_wider(lane, width) -> None:
    """A block has one proposal at least and as many as were asked for at most."""
    blocks = list(blocks_along(lane, width=width))

    assert blocks
    for block in blocks:
        assert isinstance(block, DraftBlock)
        assert 1 <= len(block.proposals) <= width
        assert not lane.case.always_proposes or len(block.proposals) == width


@pytest.mark.parametrize("width", [1, 4, 8])
def test_block_of_an_adaptive_width_is_no_wider(lane, width) -> None:
    for block in blocks_along(lane, width=width, is_fixed=False):
        assert isinstance(block, DraftBlock)
        assert 1 <= len(block.proposals) <= width


def test_traits_bound_every_block(lane) -> None:
    traits = lane.proposer.traits

    for block in blocks_along(lane, width=traits.max_proposals):
        assert len(block.proposals) <= traits.max_proposals


def test_proposal_has_probability_in_its_own_distribution(lane) -> None:
    """A token that its draft could not have drawn would always be accepted."""
    for block in blocks_along(lane):
        for proposal in block.proposals:
            assert proposal.distribution.probability(proposal.token) > 0.0


def test_draft_distributions_sum_to_one(lane) -> None:
    for block in blocks_along(lane):
        for _, probabilities in lane.content(block):
            assert math.fsum(probabilities) == pytest.approx(1.0, abs=1e-5)


def test_proposal_without_a_distribution_is_one_hot(lane) -> None:
    """Whoever only names tokens hands over certainty, and a greedy lane gets nothing else."""
    is_drawn = lane.proposer.traits.has_distribution and lane.config.temperature
    for block in blocks_along(lane):
        for proposal in block.proposals:
            assert is_drawn or proposal.distribution.probability(proposal.token) == 1.0


def test_block_stops_after_an_end_token(lane) -> None:
    """The end may be proposed, and nothing behind it."""
    for block in blocks_along(lane):
        end = block.tokens[len(block.tokens) // 2]

        stopped = lane.draft(lane.request(end=end))

        assert block.tokens[: block.tokens.index(end) + 1] == stopped.tokens


def test_block_at_the_end_of_a_grammar_stops(lane) -> None:
    """Nothing is proposed behind an output that completes the grammar."""
    whole = lane.draft()
    assert len(whole.proposals) > 2
    complete = (*lane.generated, *whole.tokens[:2])

    stopped = lane.draft(lane.request(complete=complete))

    assert whole.tokens[:2] == stopped.tokens


def test_draw_is_addressed_by_output_position(lane) -> None:
    """A block that begins later draws for each position what an earlier one drew for it."""
    whole = lane.draft(lane.request(6))
    lane.settle(*whole.tokens[:2])

    later = lane.draft(lane.request(4))

    assert lane.content(whole)[2:] == lane.content(later)


def test_block_from_tokens_of_the_vocabulary_only(lane) -> None:
    for block in blocks_along(lane):
        assert all(0 <= token < lane.case.vocabulary for token in block.tokens)
