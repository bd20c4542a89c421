"""Add up the scheduler's counters from what an action changed in its lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.speculation.lifecycle import RequestStatus
from service.speculation.schedule import Action, Draft, DraftOptimistic, Prefill, Verify
from service.speculation.statistics import SchedulerStatistics, SequenceStatistics

_ENDED = {
    RequestStatus.COMPLETED: "completed_requests",
    RequestStatus.CANCELLED: "cancelled_requests",
    RequestStatus.FAILED: "failed_requests",
}


def tally_actions(
    statistics: SchedulerStatistics,
    action: Action,
    before: Sequence[SequenceStatistics],
    after: Sequence[SequenceStatistics],
) -> SchedulerStatistics:
    """Count one turn and the pass that it submitted, if it did."""
    verified = len(after) if isinstance(action, Verify) else 0
    drafts = isinstance(action, Draft | DraftOptimistic) and _drafted(after) > _drafted(before)
    prefilled = 0
    if isinstance(action, Prefill):
        prefilled = sum(s.target_tokens for s in after) - sum(s.target_tokens for s in before)
    return replace(
        statistics,
        turns=statistics.turns + 1,
        prefill_passes=statistics.prefill_passes + isinstance(action, Prefill),
        draft_passes=statistics.draft_passes + drafts,
        verification_passes=statistics.verification_passes + isinstance(action, Verify),
        verified_lanes=statistics.verified_lanes + verified,
        prefilled_tokens=statistics.prefilled_tokens + prefilled,
    )


def _drafted(statistics: Sequence[SequenceStatistics]) -> int:
    return sum(one.draft_tokens + one.optimistic_draft_tokens for one in statistics)


def tally_progress(
    statistics: SchedulerStatistics,
    before: Sequence[SequenceStatistics],
    after: Sequence[SequenceStatistics],
) -> SchedulerStatistics:
    """Add what the lanes' own counters gained."""
    pairs = tuple(zip(before, after, strict=True))

    def gained(name: str) -> int:
        gain: int = sum(getattr(new, name) - getattr(old, name) for old, new in pairs)
        return gain

    return replace(
        statistics,
        rounds=statistics.rounds + gained("rounds"),
        plain_steps=statistics.plain_steps + gained("plain_steps"),
        draft_tokens=statistics.draft_tokens + gained("draft_tokens"),
        judged_tokens=statistics.judged_tokens + gained("judged_tokens"),
        accepted_tokens=statistics.accepted_tokens + gained("accepted_tokens"),
        emitted_tokens=statistics.emitted_tokens + gained("emitted_tokens"),
    )


def tally_ended(statistics: SchedulerStatistics, status: RequestStatus) -> SchedulerStatistics:
    """Count one request that ended with a terminal status."""
    name = _ENDED[status]
    return replace(statistics, **{name: getattr(statistics, name) + 1})
