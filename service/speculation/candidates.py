"""What the schedule is shown of each lane: facts only, gathered at one moment."""

from __future__ import annotations

from dataclasses import dataclass

from service.speculation.contract import Target
from service.speculation.drafting import may_draft_ahead
from service.speculation.lane import Clock, Lane
from service.speculation.phase import Drafted, PendingPass, Prefilling, flight_of
from service.speculation.schedule import Candidate


@dataclass(frozen=True, slots=True)
class Gathering:
    """The view of one target's lanes; `timeout` in seconds bounds a pass, `chunk` a prefill."""

    target: Target
    timeout: float
    chunk: int
    clock: Clock

    def candidate(self, lane: Lane) -> Candidate:
        """Return the facts of one lane."""
        flight = flight_of(lane.phase)
        proposer = lane.request.proposer
        can_overlap = self.target.limits.can_overlap_drafting
        return Candidate(
            status=lane.status,
            rows=self._rows(lane),
            proposer=None if proposer is None else id(proposer),
            may_draft_ahead=can_overlap and may_draft_ahead(lane),
            pass_id=None if flight is None else flight.pending.pass_id,
            pass_ended=flight is not None and self._has_ended(flight.pending),
            since=lane.since,
        )

    def _rows(self, lane: Lane) -> int:
        """Return what the lane adds to its next target pass."""
        match lane.phase:
            case Prefilling(consumed=consumed):
                return min(self.chunk, len(lane.request.prompt) - consumed)
            case Drafted(block=block) if block is not None:
                return 1 + len(block.proposals)
            case _:
                return 1

    def _has_ended(self, pending: PendingPass) -> bool:
        """Whether a pass completed, failed or outlived its deadline."""
        if self.clock() - pending.submitted >= self.timeout:
            return True
        try:
            return pending.submission.completion.is_complete()
        except Exception:  # noqa: BLE001 - settling it will meet and report the same error
            return True
