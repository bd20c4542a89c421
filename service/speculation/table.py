"""The table of lanes: joins, cancels, one action a step, and hand-over of what ended.

It lives as long as the server. Slots are opened and closed by its owner.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from enum import Enum
from typing import assert_never

from service.errors import (
    ActiveRequests,
    NoDraftCapacity,
    UnknownRequest,
    UnsupportedCompletionCancellation,
)
from service.speculation.candidates import Gathering
from service.speculation.contract import Target
from service.speculation.drafting import draft_ahead, draft_lanes
from service.speculation.lane import Clock, Lane, LaneRequest, TerminalRequest
from service.speculation.lifecycle import RequestStatus
from service.speculation.options import SchedulerOptions
from service.speculation.phase import (
    Completed,
    PendingPass,
    flight_of,
)
from service.speculation.schedule import (
    Action,
    Draft,
    DraftOptimistic,
    PassShape,
    Prefill,
    Resolve,
    Schedule,
    Verify,
    Wait,
)
from service.speculation.settlement import settle_pass
from service.speculation.statistics import SchedulerStatistics, SequenceStatistics
from service.speculation.submission import PassTicket, submit_prefill, submit_verification
from service.speculation.tally import tally_action, tally_ended

_log = logging.getLogger(__name__)


class Turn(Enum):
    """What one step amounted to."""

    WORKED = "worked"
    WAITING = "waiting"
    IDLE = "idle"


class RequestTable:
    """Coordinates the lanes of one target; called from one thread.

    Raises:
        SettingError: an option is refused.
        UnsupportedCompletionCancellation: the engine cannot honour the timeout's disposition.
    """

    def __init__(
        self, target: Target, options: SchedulerOptions, clock: Clock = time.monotonic
    ) -> None:
        limits = target.limits
        if options.completion_cancellation not in limits.cancellations:
            raise UnsupportedCompletionCancellation(options.completion_cancellation.value)
        lanes = min(options.max_pass_lanes, limits.max_pass_lanes)
        self._chunk = min(options.prefill_chunk_tokens, limits.max_pass_rows)
        self._schedule = Schedule(
            options,
            PassShape(lanes, limits.max_pass_rows),
            can_overlap=limits.can_overlap_drafting,
        )
        self._timeout = options.completion_wait().timeout
        self._gathering = Gathering(target, self._timeout, self._chunk, clock)
        self._pass_lanes = lanes
        self._target = target
        self._clock = clock
        self._lanes: dict[int, Lane] = {}
        self._passes: dict[int, PendingPass] = {}
        self._next_request = 0
        self._next_pass = 0
        self._statistics = SchedulerStatistics(execution_topology=limits.topology)

    @property
    def options(self) -> SchedulerOptions:
        """Return the validated options."""
        return self._schedule.options

    @property
    def statistics(self) -> SchedulerStatistics:
        """Return a snapshot of the scheduler's counters."""
        active = sum(not lane.is_terminal for lane in self._lanes.values())
        return self._statistics.updated(active_lanes=active)

    @property
    def is_finished(self) -> bool:
        """Whether every lane in the table is terminal."""
        return all(lane.is_terminal for lane in self._lanes.values())

    def lane(self, request_id: int) -> Lane:
        """Return one lane, to look at.

        Raises:
            UnknownRequest: it never joined, or was handed over.
        """
        lane = self._lanes.get(request_id)
        if lane is None:
            raise UnknownRequest(request_id)
        return lane

    def add(self, request: LaneRequest) -> int:
        """Take a request that holds an open slot; return its id. Prefill is a later step.

        One that is already cancelled or finished ends at once.

        Raises:
            SettingError, NoDraftCapacity, OutputError: the request did not join.
        """
        request.config.validate()
        if request.proposer is not None and request.proposer.traits.max_proposals <= 0:
            raise NoDraftCapacity
        topology = self._statistics.execution_topology
        statistics = SequenceStatistics(
            execution_topology=topology,
            component_timings_collected=(
                request.component_timings and self._target.limits.supports_component_timings
            ),
        )
        lane = Lane(self._next_request, request, statistics, self._clock)
        lane.since = self._statistics.turns
        if request.cancellation.is_cancelled:
            lane.cancel()
        elif request.sequence.is_finished:
            lane.enter(Completed())
        self._next_request += 1
        self._lanes[lane.request_id] = lane
        self._count_ended([lane])
        return lane.request_id

    def cancel(self, request_id: int) -> None:
        """Cancel a request, now or at the boundary of the pass that it is in.

        Raises:
            UnknownRequest: it is not in the table.
            OutputError: the cancelled end could not be published; nothing changed.
        """
        lane = self.lane(request_id)
        before = lane.is_terminal
        lane.cancel()
        if not before:
            self._count_ended([lane])

    def step(self) -> Turn:
        """Apply one fairly selected action.

        A lane's failure ends that lane. Only a fault that makes the order of
        work unknowable is raised, and then the table must not be used again.
        """
        self._cancel_marked()
        active = [lane for lane in self._lanes.values() if not lane.is_terminal]
        if not active:
            return Turn.IDLE
        action = self._schedule.next_action([self._gathering.candidate(lane) for lane in active])
        if action is None:
            return Turn.IDLE
        if isinstance(action, Wait):
            return Turn.WAITING
        self._apply(action, active)
        return Turn.WORKED

    def run(self, wait: Callable[[], None]) -> None:
        """Step until every lane is terminal; call `wait` whenever only a pass can help."""
        while (turn := self.step()) is not Turn.IDLE:
            if turn is Turn.WAITING:
                wait()

    def on_progress(self, callback: Callable[[], None]) -> None:
        """Call back, from any thread, when a pass that is in flight now ends."""
        for pending in self._passes.values():
            pending.submission.completion.on_complete(callback)

    def next_deadline(self) -> float | None:
        """Return the clock time at which the oldest pass in flight expires."""
        submitted = [pending.submitted for pending in self._passes.values()]
        return min(submitted) + self._timeout if submitted else None

    def take_terminal(self) -> tuple[TerminalRequest, ...]:
        """Hand over the requests that have ended, and forget them."""
        ended = [lane for lane in self._lanes.values() if lane.is_terminal]
        for lane in ended:
            del self._lanes[lane.request_id]
        return tuple(lane.terminal() for lane in ended)

    def finish(self) -> tuple[TerminalRequest, ...]:
        """Hand over every request, in the order in which they joined.

        Raises:
            ActiveRequests: one is still active.
        """
        if not self.is_finished:
            raise ActiveRequests
        return self.take_terminal()

    def _cancel_marked(self) -> None:
        for lane in self._lanes.values():
            if lane.request.cancellation.is_cancelled and not lane.is_terminal:
                try:
                    lane.cancel()
                except Exception as error:  # noqa: BLE001 - isolation: any fault is this lane's
                    lane.fail(error)
                self._count_ended([lane])

    def _apply(self, action: Action, active: Sequence[Lane]) -> None:
        lanes = self._concerned(action, active)
        for lane in lanes:
            lane.statistics = lane.statistics.plus(scheduler_turns=1)
            lane.since = self._statistics.turns + 1
        before = [lane.statistics for lane in lanes]
        cross_request = self._act(action, lanes)
        after = [lane.statistics for lane in lanes]
        statistics = tally_action(self._statistics, action, before, after)
        self._statistics = statistics.updated(
            cross_request_draft_opportunities=(
                statistics.cross_request_draft_opportunities + cross_request
            ),
            peak_in_flight_verifications=max(
                statistics.peak_in_flight_verifications,
                sum(pending.verifies for pending in self._passes.values()),
            ),
            peak_optimistic_branches=max(
                statistics.peak_optimistic_branches, self._branched_passes(active)
            ),
        )
        self._count_ended(lanes)

    def _concerned(self, action: Action, active: Sequence[Lane]) -> list[Lane]:
        if isinstance(action, Resolve):
            return [self._lanes[lane] for lane in self._passes[action.pass_id].lanes]
        return [] if isinstance(action, Wait) else [active[index] for index in action.lanes]

    def _act(self, action: Action, lanes: Sequence[Lane]) -> bool:
        """Do one action; return whether it drafted beside other lanes' target work."""
        match action:
            case Prefill():
                chunk = self._chunk
                self._retain(submit_prefill(self._target, lanes, chunk, self._ticket()))
            case Verify():
                self._retain(submit_verification(self._target, lanes, self._ticket()))
            case Draft(cross_request=cross_request):
                return self._draft(lanes, cross_request=cross_request)
            case DraftOptimistic():
                draft_ahead(lanes, len(lanes), self._clock)
            case Resolve(pass_id=pass_id):
                pending = self._passes.pop(pass_id)
                settle_pass(self._target, pending, lanes, self.options, self._clock)
            case Wait():
                pass
            case _:
                assert_never(action)
        return False

    def _draft(self, lanes: Sequence[Lane], *, cross_request: bool) -> bool:
        decoding = (RequestStatus.READY_TO_DRAFT, RequestStatus.READY_TO_SUBMIT_VERIFICATION)
        expected = sum(lane.status in decoding for lane in self._lanes.values())
        before = [lane.statistics.draft_tokens for lane in lanes]
        drawn = draft_lanes(lanes, min(expected, self._pass_lanes))
        if not (cross_request and drawn):
            return False
        for lane, drafted in zip(lanes, before, strict=True):
            if lane.statistics.draft_tokens > drafted:
                lane.statistics = lane.statistics.plus(cross_request_draft_opportunities=1)
        return True

    def _ticket(self) -> PassTicket:
        self._next_pass += 1
        return PassTicket(self._next_pass, self._clock())

    def _retain(self, pending: PendingPass | None) -> None:
        if pending is not None:
            self._passes[pending.pass_id] = pending

    def _branched_passes(self, active: Sequence[Lane]) -> int:
        flights = (flight_of(lane.phase) for lane in active)
        return len({f.pending.pass_id for f in flights if f is not None and f.branch})

    def _count_ended(self, lanes: Sequence[Lane]) -> None:
        """Count the lanes that have just ended, and let their proposers forget them."""
        for lane in lanes:
            if not lane.is_terminal:
                continue
            self._statistics = tally_ended(self._statistics, lane.status)
            proposer = lane.request.proposer
            if proposer is not None:
                try:
                    proposer.close(lane.request.slot)
                except Exception:  # noqa: BLE001 - the lane has ended; its proposer's fault is logged
                    _log.exception("proposer %s could not close a lane", proposer.traits.name)
