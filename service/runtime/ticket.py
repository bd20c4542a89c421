"""A request's place in the runtime, from its arrival to its last message."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from service.errors import EngineError, OutriderError
from service.generation.cancellation import CancellationToken
from service.generation.events import Finished
from service.generation.finish import FinishReason
from service.runtime.outbox import Outbox
from service.runtime.preparation import PreparedRequest
from service.runtime.request import Ended, Failed
from service.speculation.lane import TerminalRequest
from service.speculation.lifecycle import RequestStatus
from service.speculation.publication import PublishedRound


@dataclass(slots=True, eq=False)
class Ticket:
    """A live request; only the engine thread changes it, save for its cancellation.

    `arrived`, `started` (when it got a slot) and `deadline` are clock times.
    `verdict` is why the runtime ends it, where it does; a request that its
    client cancelled has none.
    """

    prepared: PreparedRequest
    caller: str
    outbox: Outbox
    arrived: float
    deadline: float | None = None
    cancellation: CancellationToken = field(default_factory=CancellationToken)
    verdict: OutriderError | None = None
    started: float | None = None
    emitted: int = 0

    def end_with(self, verdict: OutriderError) -> None:
        """Cancel the request for this reason, unless it is ending already."""
        if not self.cancellation.is_cancelled:
            self.verdict = verdict
            self.cancellation.cancel()


def closing_message(ticket: Ticket, terminal: TerminalRequest) -> Ended | Failed:
    """Return the last message of a request that left the table.

    A verdict decides, unless the request completed all the same.
    """
    error = terminal.error
    if terminal.status is not RequestStatus.COMPLETED:
        error = ticket.verdict or error
    if error is not None or terminal.finish_reason is None:
        return Failed(error or EngineError("no finish reason"), terminal.statistics)
    return Ended(
        reason=terminal.finish_reason,
        matched_stop=terminal.matched_stop,
        prompt_tokens=ticket.prepared.admitted.prompt_tokens,
        completion_tokens=len(terminal.tokens),
        statistics=terminal.statistics,
        reasoning_tokens=terminal.reasoning_tokens,
    )


def without_cancelled_end(published: PublishedRound) -> PublishedRound | None:
    """Drop the cancelled end from a round; None if nothing is left.

    A request that the runtime ends fails, and a failure has no finished event.
    """
    cancelled = Finished(FinishReason.CANCELLED)
    events = tuple(event for event in published.events if event != cancelled)
    if not events and not published.tokens:
        return None
    return replace(published, events=events)
