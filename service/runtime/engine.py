"""One turn of a model's engine: observe, admit, step, settle, hand over."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from service.errors import (
    EngineError,
    NoFreeSlot,
    PublicationError,
    RequestTimedOut,
    ServiceError,
    SlowConsumer,
)
from service.generation.finish import FinishReason
from service.runtime.admission import Admission
from service.runtime.hand_over import HandOver
from service.runtime.models import LoadedModel
from service.runtime.request import Ended, Failed
from service.runtime.statistics import Ends, EngineSnapshot
from service.runtime.ticket import Ticket, closing_message, without_cancelled_end
from service.speculation.lane import LaneRequest, TerminalRequest, as_outrider_error
from service.speculation.publication import CallbackPublisher, PublishedRound
from service.speculation.statistics import SequenceStatistics
from service.speculation.table import RequestTable, Turn

_PATIENCE = 10
"""How many times a pass's bound the engine waits for a slot before it calls its device dead."""


class Engine:
    """Decodes one model's requests; all of it belongs to the engine thread, save `snapshot`."""

    def __init__(
        self,
        model: LoadedModel,
        table: RequestTable,
        admission: Admission,
        hand_over: HandOver,
        clock: Callable[[], float],
    ) -> None:
        self._model = model
        self._table = table
        self._admission = admission
        self._hand_over = hand_over
        self._clock = clock
        self._live: dict[int, Ticket] = {}
        self._lost_slots = 0
        self._starved_since: float | None = None
        self._ends = Ends()
        self.snapshot = EngineSnapshot(table.statistics)

    def turn(self) -> Turn:
        """Do at most one action of the scheduler, and everything around it.

        Raises:
            Exception: the order of work is unknowable, and the engine must stop.
        """
        self._observe_deadlines()
        self._leave_line()
        self._admit()
        turn = self._table.step()
        for terminal in self._table.take_terminal():
            self._settle(terminal)
        self._take_snapshot()
        self._hand_over.flush()
        return turn

    def evict(self, verdict: ServiceError) -> None:
        """End every request for this reason, each at its next boundary."""
        for ticket in self._tickets():
            ticket.end_with(verdict)

    def abort(self, error: ServiceError) -> None:
        """Fail every request at once and refuse later ones: no boundary will come."""
        self._admission.close(error)
        for ticket in (*self._live.values(), *self._admission.remove(lambda _: True)):
            self._close(ticket, Failed(ticket.verdict or error, None))
        self._live.clear()
        self._take_snapshot()
        self._hand_over.flush()

    @property
    def is_starved(self) -> bool:
        """Whether requests wait for slots that only unfinished work can free."""
        return bool(len(self._admission)) and not self._live

    def next_deadline(self) -> float | None:
        """Return the clock time at which to look again, even if nothing happens until then."""
        times = [self._table.next_deadline()]
        # One that ends already has nothing left to observe but its pass.
        times += [each.deadline for each in self._tickets() if not each.cancellation.is_cancelled]
        return min((time for time in times if time is not None), default=None)

    def on_progress(self, callback: Callable[[], None]) -> None:
        """Call back, from any thread, when a pass in flight completes."""
        self._table.on_progress(callback)

    def _tickets(self) -> tuple[Ticket, ...]:
        return (*self._live.values(), *self._admission.waiting())

    def _observe_deadlines(self) -> None:
        now = self._clock()
        for ticket in self._tickets():
            if ticket.deadline is not None and ticket.deadline <= now:
                ticket.end_with(RequestTimedOut(ticket.deadline - ticket.arrived))

    def _leave_line(self) -> None:
        """End the waiting requests that were cancelled; they never take a slot."""
        for ticket in self._admission.remove(lambda ticket: ticket.cancellation.is_cancelled):
            if ticket.verdict is None:
                text = ticket.prepared.text
                text.cancel()
                ticket.outbox.put(PublishedRound((), (), 0, 0, text.take_events()))
            self._close(ticket, self._unstarted_end(ticket))

    def _unstarted_end(self, ticket: Ticket) -> Ended | Failed:
        if ticket.verdict is not None:
            return Failed(ticket.verdict, None)
        topology = self._model.target.limits.topology
        return Ended(
            reason=FinishReason.CANCELLED,
            matched_stop=None,
            prompt_tokens=ticket.prepared.admitted.prompt_tokens,
            completion_tokens=0,
            statistics=SequenceStatistics(execution_topology=topology),
        )

    def _admit(self) -> None:
        """Give free slots to those who are next."""
        slots = self._model.target.limits.max_slots
        while len(self._admission) and len(self._live) < slots:
            try:
                slot = self._model.target.open()
            except NoFreeSlot:
                self._bear_starvation(slots)
                return
            self._starved_since = None
            ticket = self._admission.take()
            if ticket is None:
                self._model.target.close(slot)
                return
            self._begin(ticket, slot)

    def _bear_starvation(self, slots: int) -> None:
        """Wait for slots whose work has not ended, but not for ever.

        Raises:
            EngineError: none will come back; the engine must stop.
        """
        if self._lost_slots >= slots:
            raise EngineError("every cache slot has been retired")
        if self._live:
            return
        now = self._clock()
        self._starved_since = now if self._starved_since is None else self._starved_since
        patience = _PATIENCE * self._table.options.completion_wait().timeout
        if now - self._starved_since >= patience:
            raise EngineError(f"work that does not end has held every slot for {patience:g} s")

    def _begin(self, ticket: Ticket, slot: int) -> None:
        ticket.started = self._clock()
        try:
            request_id = self._table.add(self._lane_request(ticket, slot))
        except Exception as error:  # noqa: BLE001 - what one request cannot be built from is its own
            self._close(ticket, Failed(as_outrider_error(error), None))
            self._admission.release(0.0)
            self._model.target.close(slot)
        else:
            self._live[request_id] = ticket

    def _lane_request(self, ticket: Ticket, slot: int) -> LaneRequest:
        prepared = ticket.prepared
        speculation = prepared.admitted.speculation
        return LaneRequest(
            slot=slot,
            prompt=prepared.prompt,
            config=prepared.config,
            sampler=self._model.target.sampler(prepared.sampling),
            sequence=prepared.sequence,
            text=prepared.text,
            publisher=CallbackPublisher(partial(self._deliver, ticket)),
            cancellation=ticket.cancellation,
            randomness=prepared.randomness,
            proposer=None if prepared.proposer is None else prepared.proposer.proposer,
            observer=self._model.observer,
            lookahead=speculation.lookahead,
            component_timings=prepared.component_timings,
            logprobs=prepared.sampling.config.logprobs,
            prompt_logprobs=prepared.sampling.config.prompt_logprobs,
        )

    def _deliver(self, ticket: Ticket, published: PublishedRound) -> None:
        """Append a round to its outbox: the atomic boundary of publication."""
        told = published if ticket.verdict is None else without_cancelled_end(published)
        if told is None:
            return
        try:
            ticket.outbox.put(told)
        except SlowConsumer as slow:
            ticket.verdict = ticket.verdict or slow
            raise PublicationError(str(slow)) from slow
        ticket.emitted += len(told.tokens)
        self._hand_over.touch(ticket)

    def _settle(self, terminal: TerminalRequest) -> None:
        """Send a request's last message, then take its slot back or retire it.

        In this order a slot that cannot be closed, which stops the engine,
        costs nobody a message.
        """
        ticket = self._live.pop(terminal.request_id)
        self._close(ticket, closing_message(ticket, terminal))
        self._admission.release(self._clock() - (ticket.started or 0.0))
        if terminal.slot_is_reusable:
            self._model.target.close(terminal.slot)
        else:
            self._model.target.abandon(terminal.slot)
            self._lost_slots += 1

    def _close(self, ticket: Ticket, last: Ended | Failed) -> None:
        ticket.outbox.close(last)
        self._ends = self._ends.with_end(last)
        self._hand_over.touch(ticket)

    def _take_snapshot(self) -> None:
        self.snapshot = EngineSnapshot(
            table=self._table.statistics,
            ends=self._ends,
            active_lanes=len(self._live),
            kv_cache_tokens=self._cached_tokens(),
        )

    def _cached_tokens(self) -> int:
        """Return the tokens in the cache, lanes that are still in prefill not counted."""
        return sum(
            ticket.prepared.admitted.prompt_tokens + ticket.emitted - 1
            for ticket in self._live.values()
            if ticket.emitted
        )
