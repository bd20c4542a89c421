"""Add up the scheduler's counters from what an action changed in its lanes."""

from __future__ import annotations

from collections.abc import Sequence

from service.speculation.lifecycle import RequestStatus
from service.speculation.schedule import Action, Draft, DraftOptimistic, Prefill, Verify
from service.speculation.statistics import SchedulerStatistics, SequenceStatistics

_ENDED = {
    RequestStatus.COMPLETED: "completed_requests",
    RequestStatus.CANCELLED: "cancelled_requests",
    RequestStatus.FAILED: "failed_requests",
}
_SHARED = (
    "rounds",
    "plain_steps",
    "draft_tokens",
    "judged_tokens",
    "accepted_tokens",
    "emitted_tokens",
)

Counted = Sequence[SequenceStatistics]


def tally_action(
    statistics: SchedulerStatistics, action: Action, before: Counted, after: Counted
) -> SchedulerStatistics:
    """Count one turn, the pass that it submitted, and what its lanes' own counters gained."""
    submitted = _submitted(action, before, after)
    gains = {name: _gain(name, before, after) for name in _SHARED}
    return statistics.plus(turns=1, **submitted, **gains)


def _submitted(action: Action, before: Counted, after: Counted) -> dict[str, int]:
    """Count the pass that an action really submitted; a refused one fed no tokens."""
    fed = _gain("target_tokens", before, after)
    match action:
        case Prefill():
            return {"prefill_passes": int(fed > 0), "prefilled_tokens": fed}
        case Verify():
            grown = zip(before, after, strict=True)
            lanes = sum(new.target_tokens > old.target_tokens for old, new in grown)
            return {"verification_passes": int(fed > 0), "verified_lanes": lanes}
        case Draft() | DraftOptimistic():
            drafted = _gain("draft_tokens", before, after)
            ahead = _gain("optimistic_draft_tokens", before, after)
            return {"draft_passes": int(drafted + ahead > 0)}
        case _:
            return {}


def _gain(name: str, before: Counted, after: Counted) -> int:
    gain: int = sum(getattr(one, name) for one in after) - sum(getattr(one, name) for one in before)
    return gain


def tally_ended(statistics: SchedulerStatistics, status: RequestStatus) -> SchedulerStatistics:
    """Count one request that ended with a terminal status."""
    return statistics.plus(**{_ENDED[status]: 1})
