"""A model served on this thread, turn by turn: requests and answers as on the wire.

Everything between is the service's own: validation, conversion, preparation, the line, the
engine's turns, the outbox and the messages. Only the event loop is missing, and with it chance.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from exactness.answer import Answer, read_answer
from exactness.subject import Subject
from outrider.v1.generation_pb2 import Generation
from service.rpc.messages import admitted_message
from service.rpc.requests import generation_request
from service.rpc.validation import validate
from service.runtime.admission import Admission
from service.runtime.engine import Engine
from service.runtime.hand_over import HandOver
from service.runtime.models import LoadedModel
from service.runtime.outbox import Outbox
from service.runtime.preparation import PreparedRequest, prepare_request
from service.runtime.request import Ended, Failed, GenerationRequest, Message
from service.runtime.ticket import Ticket
from service.speculation.options import SchedulerOptions
from service.speculation.table import RequestTable, Turn

FIXED_WIDTH = 4
_UNBOUNDED = 2**31
_FOREVER = 1e9


@dataclass(frozen=True, slots=True)
class Crowd:
    """How requests come: at most `lanes` at a time, one after every so many turns."""

    lanes: int = 8
    gap: int = 0


@dataclass(frozen=True, slots=True)
class _Asked:
    request: GenerationRequest
    ticket: Ticket

    def answer(self) -> Answer:
        admitted = admitted_message(self.ticket.prepared.admitted, self.request)
        return read_answer(admitted, _drained(self.ticket.outbox))


class Served:
    """One model's engine, driven by hand."""

    def __init__(self, subject: Subject, options: SchedulerOptions | None = None) -> None:
        self._subject = subject
        self._model = replace(subject.model, scheduler=options or SchedulerOptions())
        target = self._model.target
        self._admission = Admission(_UNBOUNDED, target.limits.max_slots, lambda: None)
        table = RequestTable(target, self._model.scheduler, self._now)
        hand_over = HandOver(_closed_loop(), lambda _: None)
        self._engine = Engine(self._model, table, self._admission, hand_over, self._now)

    def answers(self, asked: Sequence[Generation], crowd: Crowd = Crowd()) -> list[Answer]:
        """Serve requests, in their order, and return what each was answered."""
        waiting = deque(enumerate(asked))
        live: list[_Asked] = []
        given: list[_Asked] = []
        turns = 0
        while waiting or live:
            if waiting and len(live) < crowd.lanes and turns >= crowd.gap * len(given):
                number, message = waiting.popleft()
                given.append(self._submit(str(number), message))
                live.append(given[-1])
                continue
            turns += 1
            if self._engine.turn() is Turn.WAITING:
                self._let_time_pass()
            live = [each for each in live if not each.ticket.outbox.is_closed]
        return [each.answer() for each in given]

    def _submit(self, number: str, message: Generation) -> _Asked:
        request, prepared = prepared_request(self._model, message, number)
        ticket = Ticket(
            prepared=prepared,
            caller=request.caller,
            outbox=Outbox(_UNBOUNDED, _FOREVER, self._now),
            arrived=self._now(),
        )
        with self._admission.arrival():
            self._admission.submit(ticket)
        return _Asked(request, ticket)

    def _now(self) -> float:
        return 0.0 if self._subject.clock is None else self._subject.clock.now()

    def _let_time_pass(self) -> None:
        """Go to the end of the next pass."""
        clock = self._subject.clock
        if clock is None:
            raise AssertionError("an engine without a clock has nothing to wait for")
        self._engine.on_progress(lambda: None)
        times = (clock.next_call(), self._engine.next_deadline())
        clock.wait_until(min(time for time in times if time is not None))


def prepared_request(
    model: LoadedModel, message: Generation, request_id: str = "0"
) -> tuple[GenerationRequest, PreparedRequest]:
    """Check, convert and prepare a message as the server does.

    Raises:
        RequestError: a field is refused.
    """
    validate(message)
    request = generation_request(
        message, request_id=request_id, caller="exactness", time_remaining=None
    )
    return request, prepare_request(model, request, fixed_width=FIXED_WIDTH)


def _closed_loop() -> asyncio.AbstractEventLoop:
    """Return a loop on which nobody waits to be told anything."""
    loop = asyncio.new_event_loop()
    loop.close()
    return loop


def _drained(outbox: Outbox) -> Iterator[Message]:
    """Yield every message; the last one, once."""
    while (message := outbox.take()) is not None:
        yield message
        if isinstance(message, Ended | Failed):
            return
