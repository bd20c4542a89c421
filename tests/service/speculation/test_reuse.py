import pytest

from service.errors import EmptyOptimisticBranch, OptimisticPrefixDiverged
from service.speculation.contract import DraftBlock, Proposal
from service.speculation.reuse import (
    OptimisticBranch,
    ReuseDecision,
    decide_reuse,
    discard_promoted,
    resolve_branch,
)
from service.speculation.statistics import SequenceStatistics
from tests.service.speculation.doubles import PREFERS_ONE

NONE_YET = SequenceStatistics()


def branch_of(*tokens):
    block = DraftBlock("state", tuple(Proposal(token, PREFERS_ONE) for token in tokens))
    return OptimisticBranch(block, (1,))


@pytest.mark.parametrize(
    ("tokens", "bonus", "terminal", "decision"),
    [
        ((2, 3), 2, False, ReuseDecision.MATCHED_RETAINED),
        ((2,), 2, False, ReuseDecision.MATCHED_CONSUMED),
        ((2,), 9, False, ReuseDecision.DISCARD_MISMATCH),
        ((2, 3), 2, True, ReuseDecision.DISCARD_TERMINAL),
    ],
)
def test_optimistic_reuse_is_decided_by_the_bonus(tokens, bonus, terminal, decision):
    assert decision is decide_reuse(tokens, bonus, assumed=(1,), canonical=(1,), terminal=terminal)


def test_optimistic_reuse_fails_closed_on_another_prefix_or_an_empty_branch():
    with pytest.raises(OptimisticPrefixDiverged):
        decide_reuse((2,), 2, assumed=(1,), canonical=(9,), terminal=False)
    with pytest.raises(EmptyOptimisticBranch):
        decide_reuse((), 2, assumed=(1,), canonical=(1,), terminal=False)


def test_matched_branch_promotes_what_follows_its_first_token():
    block, counted = resolve_branch(branch_of(2, 3, 4), 2, NONE_YET, canonical=(1,), terminal=False)
    assert block.tokens == (3, 4)
    assert counted.draft_tokens == counted.reused_optimistic_tokens == 2
    assert counted.consumed_optimistic_tokens == counted.optimistic_bonus_matches == 1
    undone = discard_promoted(block, counted)
    assert undone.draft_tokens == undone.reused_optimistic_tokens == 0
    assert undone.discarded_optimistic_tokens == 2


@pytest.mark.parametrize(("bonus", "terminal"), [(None, False), (9, False), (2, True)])
def test_unusable_branch_is_discarded_whole(bonus, terminal):
    block, counted = resolve_branch(
        branch_of(2, 3), bonus, NONE_YET, canonical=(1,), terminal=terminal
    )
    assert block is None
    assert counted.discarded_optimistic_tokens == 2
    assert counted.discarded_optimistic_blocks == 1
    assert counted.optimistic_target_bonus_tokens == (bonus is not None)
