"""Optimistic branches: what becomes of a block drafted before its prefix was verified."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from service.errors import EmptyOptimisticBranch, OptimisticPrefixDiverged
from service.speculation.contract import DraftBlock, Tokens
from service.speculation.statistics import SequenceStatistics


@dataclass(frozen=True, slots=True)
class OptimisticBranch:
    """A block drafted against an assumed output (committed tokens and a whole block)."""

    block: DraftBlock
    assumed: Tokens


class ReuseDecision(Enum):
    """What a verified prefix means for a branch."""

    DISCARD_TERMINAL = "discard_terminal"
    DISCARD_MISMATCH = "discard_mismatch"
    MATCHED_CONSUMED = "matched_consumed"
    MATCHED_RETAINED = "matched_retained"


def decide_reuse(
    branch: Tokens, bonus: int, *, assumed: Tokens, canonical: Tokens, terminal: bool
) -> ReuseDecision:
    """Compare a branch's tokens with the target's bonus.

    Raises:
        OptimisticPrefixDiverged: the branch assumed another prefix.
        EmptyOptimisticBranch: the branch has no tokens.

    Source: eredu-core, `resolve_optimistic_reuse`.
    """
    if assumed != canonical:
        raise OptimisticPrefixDiverged
    if not branch:
        raise EmptyOptimisticBranch
    if terminal:
        return ReuseDecision.DISCARD_TERMINAL
    if branch[0] != bonus:
        return ReuseDecision.DISCARD_MISMATCH
    if len(branch) == 1:
        return ReuseDecision.MATCHED_CONSUMED
    return ReuseDecision.MATCHED_RETAINED


def discard(branch: OptimisticBranch | None, statistics: SequenceStatistics) -> SequenceStatistics:
    """Count a branch as thrown away."""
    if branch is None:
        return statistics
    return _discarded(statistics, len(branch.block.proposals))


def discard_promoted(
    block: DraftBlock | None, statistics: SequenceStatistics
) -> SequenceStatistics:
    """Take back the promotion of a block that will not be verified after all."""
    if block is None:
        return statistics
    count = len(block.proposals)
    return _discarded(statistics, count).plus(
        draft_tokens=-count, reused_optimistic_tokens=-count, reused_optimistic_blocks=-1
    )


def resolve_branch(
    branch: OptimisticBranch | None,
    bonus: int | None,
    statistics: SequenceStatistics,
    *,
    canonical: Tokens,
    terminal: bool,
) -> tuple[DraftBlock | None, SequenceStatistics]:
    """Promote, consume or discard a branch; return the promoted block and the counters."""
    if branch is None:
        return None, statistics
    if bonus is None:
        return None, discard(branch, statistics)
    tokens = branch.block.tokens
    decision = decide_reuse(
        tokens, bonus, assumed=branch.assumed, canonical=canonical, terminal=terminal
    )
    statistics = statistics.plus(optimistic_target_bonus_tokens=1)
    if decision is ReuseDecision.DISCARD_TERMINAL:
        return None, discard(branch, statistics)
    if decision is ReuseDecision.DISCARD_MISMATCH:
        statistics = statistics.plus(optimistic_bonus_mismatches=1)
        return None, discard(branch, statistics)
    statistics = statistics.plus(optimistic_bonus_matches=1, consumed_optimistic_tokens=1)
    if decision is ReuseDecision.MATCHED_CONSUMED:
        return None, statistics
    return _promote(branch.block, statistics)


def _promote(
    block: DraftBlock, statistics: SequenceStatistics
) -> tuple[DraftBlock, SequenceStatistics]:
    kept = block.proposals[1:]
    promoted = statistics.plus(
        draft_tokens=len(kept), reused_optimistic_tokens=len(kept), reused_optimistic_blocks=1
    )
    return DraftBlock(block.state, kept), promoted


def _discarded(statistics: SequenceStatistics, tokens: int) -> SequenceStatistics:
    return statistics.plus(discarded_optimistic_tokens=tokens, discarded_optimistic_blocks=1)
