"""The status of one request: a table of legal edges, and cancellation at safe boundaries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from service.errors import InvalidStatusTransition


class RequestStatus(Enum):
    """Where a request stands; names are eredu-core's, and FAILED is ours."""

    PREFILL = "prefill"
    READY_TO_DRAFT = "ready_to_draft"
    READY_TO_SUBMIT_VERIFICATION = "ready_to_submit_verification"
    TARGET_VERIFICATION_IN_FLIGHT = "target_verification_in_flight"
    OPTIMISTIC_DRAFT_RUNNING = "optimistic_draft_running"
    OPTIMISTIC_DRAFT_READY = "optimistic_draft_ready"
    VERIFICATION_RESOLUTION = "verification_resolution"
    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"


TERMINAL = frozenset({RequestStatus.COMPLETED, RequestStatus.CANCELLED, RequestStatus.FAILED})

_S = RequestStatus
_NORMAL_EDGES: dict[RequestStatus, frozenset[RequestStatus]] = {
    _S.PREFILL: frozenset({_S.READY_TO_DRAFT, _S.COMPLETED, _S.CANCELLED}),
    _S.READY_TO_DRAFT: frozenset({_S.READY_TO_SUBMIT_VERIFICATION, _S.COMPLETED, _S.CANCELLED}),
    _S.READY_TO_SUBMIT_VERIFICATION: frozenset({_S.TARGET_VERIFICATION_IN_FLIGHT, _S.CANCELLED}),
    _S.TARGET_VERIFICATION_IN_FLIGHT: frozenset(
        {_S.OPTIMISTIC_DRAFT_RUNNING, _S.VERIFICATION_RESOLUTION}
    ),
    _S.OPTIMISTIC_DRAFT_RUNNING: frozenset({_S.OPTIMISTIC_DRAFT_READY}),
    _S.OPTIMISTIC_DRAFT_READY: frozenset({_S.VERIFICATION_RESOLUTION}),
    _S.VERIFICATION_RESOLUTION: frozenset({_S.READY_TO_DRAFT, _S.COMPLETED, _S.CANCELLED}),
}
EDGES: dict[RequestStatus, frozenset[RequestStatus]] = {
    status: frozenset() if status in TERMINAL else _NORMAL_EDGES[status] | {RequestStatus.FAILED}
    for status in RequestStatus
}


class CancellationDisposition(Enum):
    """What a request to cancel amounts to."""

    ALREADY_TERMINAL = "already_terminal"
    CANCEL_NOW = "cancel_now"
    DEFERRED = "deferred"


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """A validated status; a pending cancellation waits for the pass in flight."""

    status: RequestStatus = RequestStatus.PREFILL
    cancellation_pending: bool = False

    @property
    def is_terminal(self) -> bool:
        """Whether the request can own no further submission."""
        return self.status in TERMINAL

    def to(self, status: RequestStatus) -> Lifecycle:
        """Follow one legal edge.

        Raises:
            InvalidStatusTransition: the edge is not in the table; nothing changed.
        """
        if status not in EDGES[self.status]:
            raise InvalidStatusTransition(self.status.value, status.value)
        pending = self.cancellation_pending and status not in TERMINAL
        return Lifecycle(status, cancellation_pending=pending)

    def request_cancellation(
        self, *, submission_retained: bool
    ) -> tuple[Lifecycle, CancellationDisposition]:
        """Ask to cancel; a retained submission must first reach its exact boundary."""
        if self.is_terminal:
            return self, CancellationDisposition.ALREADY_TERMINAL
        if submission_retained:
            pending = replace(self, cancellation_pending=True)
            return pending, CancellationDisposition.DEFERRED
        return self.to(RequestStatus.CANCELLED), CancellationDisposition.CANCEL_NOW
