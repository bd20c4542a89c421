"""The façade that a wire protocol serves: requests in, messages out, on one event loop."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from service.errors import (
    Draining,
    FieldViolation,
    InvalidRequest,
    NoSuchRequest,
    RequestTimedOut,
    Starting,
    UnknownModel,
)
from service.runtime.generation import Generation
from service.runtime.live import LiveRequests, Reservation
from service.runtime.models import LoadedModel, ModelRegistry
from service.runtime.outbox import Outbox
from service.runtime.preparation import PreparedRequest, prepare_request
from service.runtime.request import ChatPrompt, GenerationRequest
from service.runtime.request_checks import missing_ids
from service.runtime.running_model import RunningModel
from service.runtime.settings import RuntimeOptions
from service.runtime.statistics import RuntimeStatistics
from service.runtime.ticket import Ticket
from service.runtime.turn import plan_turn
from service.runtime.work import Effort, WorkThreads, effort_of, prompt_effort, text_effort
from service.speculation.contract import Tokens

_STOP_SECONDS = 30.0
"""How long to wait for an engine to leave the pass that it is in."""


class Runtime:
    """Serves the models of a registry; every method belongs to one event loop."""

    def __init__(
        self,
        models: ModelRegistry,
        options: RuntimeOptions | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._registry = models
        self._options = options or RuntimeOptions()
        self._clock = clock
        self._live = LiveRequests()
        self._running: dict[str, RunningModel] = {}
        self._draining = False
        self._told_serving = False
        self._watchers: list[Callable[[bool], None]] = []
        self._work = WorkThreads(self._options.preparation_threads)

    async def start(self) -> None:
        """Start one engine thread for each model.

        Raises:
            SettingError, UnsupportedCompletionCancellation: a model's options do not fit it.
        """
        loop = asyncio.get_running_loop()

        def stopped() -> None:
            # A loop that has closed has nobody to tell.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._tell_serving)

        self._running = {
            model.name: RunningModel(
                model, self._options.max_queued_requests, self._clock, self._receive, stopped
            )
            for model in self._registry.all()
        }
        for running in self._running.values():
            running.start()
        self._tell_serving()

    async def drain(self, grace_seconds: float) -> None:
        """Refuse new requests, let live ones end, and fail those left after the grace."""
        self._draining = True
        self._tell_serving()
        for running in self._running.values():
            running.admission.close(Draining())
        try:
            async with asyncio.timeout(grace_seconds):
                await self._live.until_empty()
        except TimeoutError:
            for running in self._running.values():
                running.thread.evict(Draining())
            await self._live.until_empty()

    async def stop(self) -> None:
        """End every engine thread; live requests fail. Idempotent."""
        self._draining = True
        loop = asyncio.get_running_loop()
        for running in self._running.values():
            running.thread.stop()
        for running in self._running.values():
            await loop.run_in_executor(None, running.thread.join, _STOP_SECONDS)
        self._work.shutdown()
        self._tell_serving()

    @property
    def is_serving(self) -> bool:
        """Whether new requests are taken: started, not draining, every engine running."""
        threads = [running.thread for running in self._running.values()]
        running = bool(threads) and all(thread.is_running for thread in threads)
        return running and not self._draining

    def on_serving_change(self, callback: Callable[[bool], None]) -> None:
        """Call back on the event loop whenever `is_serving` changes."""
        self._watchers.append(callback)

    def _tell_serving(self) -> None:
        if self.is_serving is not self._told_serving:
            self._told_serving = self.is_serving
            for watcher in self._watchers:
                watcher(self._told_serving)

    async def generate(self, request: GenerationRequest) -> Generation:
        """Validate, prepare and queue a request.

        Raises:
            RequestError: the request cannot be served; violations name fields by their
                path inside the proto message `Generation`.
            ServiceError: the queue is full, or the server drains or has stopped.
        """
        arrived = self._clock()
        running = self._running_model(request.model)
        request = replace(request, timeout=self._timeout(request))
        with (
            running.admission.arrival(),
            self._live.reserve(request.caller, request.request_id) as reservation,
        ):
            prepared = await self._prepared(running.model, request)
            reservation.ticket = self._ticket(prepared, reservation, arrived)
            running.admission.submit(reservation.ticket)
        return Generation(reservation.ticket, running.wake, self._live.forget)

    def missing_ids(self, request: GenerationRequest) -> tuple[FieldViolation, ...]:
        """Return which ids of a request its model lacks; none where there is no such model."""
        try:
            return missing_ids(self._registry.find(request.model), request)
        except UnknownModel:
            return ()

    def cancel(self, caller: str, request_id: str) -> None:
        """Cancel a live request of a caller.

        Raises:
            NoSuchRequest: it has ended, or never was.
        """
        reservation = self._live.find(caller, request_id)
        if reservation is None:
            raise NoSuchRequest(request_id)
        reservation.cancellation.cancel()
        for running in self._running.values():
            running.wake()

    def _timeout(self, request: GenerationRequest) -> float | None:
        limits = (request.timeout, self._options.max_request_seconds)
        return min((limit for limit in limits if limit is not None), default=None)

    async def _prepared(self, model: LoadedModel, request: GenerationRequest) -> PreparedRequest:
        """Prepare a request within its own time.

        Raises:
            RequestError: a field is refused, or the time is over.
        """
        width = self._options.num_speculative_tokens
        work = partial(prepare_request, model, request, fixed_width=width)
        bound = asyncio.timeout(request.timeout)
        try:
            async with bound:
                return await self._work.run(effort_of(request), work)
        except TimeoutError:
            if request.timeout is None or not bound.expired():
                raise
            raise RequestTimedOut(request.timeout) from None

    def _ticket(
        self, prepared: PreparedRequest, reservation: Reservation, arrived: float
    ) -> Ticket:
        options, timeout = self._options, prepared.admitted.timeout
        return Ticket(
            prepared=prepared,
            caller=reservation.caller,
            outbox=Outbox(options.max_outbox_messages, options.slow_consumer_seconds, self._clock),
            arrived=arrived,
            deadline=None if timeout is None else arrived + timeout,
            cancellation=reservation.cancellation,
        )

    def _receive(self, touched: tuple[Ticket, ...]) -> None:
        """Wake the readers of what a turn brought; forget the requests that it ended."""
        for ticket in touched:
            ticket.outbox.notify()
            if ticket.outbox.is_closed:
                self._live.forget(ticket)

    def models(self) -> tuple[LoadedModel, ...]:
        """Return the models, the default one first."""
        return self._registry.all()

    def model(self, name: str = "") -> LoadedModel:
        """Return a model by name or alias, the default one where the name is empty.

        Raises:
            UnknownModel: no model has this name.
        """
        return self._registry.find(name)

    def statistics(self, model: str = "") -> RuntimeStatistics:
        """Return a model's statistics as of its last turn; never blocks.

        Raises:
            UnknownModel: no model has this name.
        """
        return self._running_model(model).statistics()

    async def tokenize(
        self, model: str, text: str, *, add_special_tokens: bool
    ) -> tuple[Tokens, str]:
        """Return a text's tokens and its characters that they lack, computed off the event loop.

        Raises:
            InvalidRequest: the text is longer than the model's `max_characters`.
        """
        found = self.model(model)
        side = found.text
        _require_at_most(found.max_characters, "text", "characters", len(text))

        def encode() -> tuple[Tokens, str]:
            tokens = side.encode(text, add_special_tokens=add_special_tokens)
            return tokens, side.lost_characters(text)

        return await self._work.run(text_effort(len(text)), encode)

    async def detokenize(self, model: str, tokens: Tokens, *, skip_special_tokens: bool) -> str:
        """Return the text of tokens, computed off the event loop.

        Raises:
            InvalidRequest: some ids are no tokens, or they are more than the model's window holds.
        """
        found = self.model(model)
        _require_at_most(found.target.limits.max_context, "token_ids", "tokens", len(tokens))
        decode = partial(found.text.decode, tokens, skip_special_tokens=skip_special_tokens)
        return await self._work.run(Effort.USUAL, decode)

    async def render_chat(self, model: str, chat: ChatPrompt) -> tuple[str, Tokens]:
        """Return a conversation as prompt text and its tokens, computed off the event loop.

        Raises:
            NoChatTemplate: the model has none.
            InvalidRequest: a generation would refuse the conversation, or it or its prompt is
                longer than the model's `max_characters`.
        """
        found = self.model(model)
        text = found.text

        def render() -> tuple[str, Tokens]:
            plan_turn(text, chat, None)
            rendered = text.render(chat, max_characters=found.max_characters)
            return rendered, text.encode_rendered(rendered)

        return await self._work.run(prompt_effort(chat), render)

    def _running_model(self, name: str) -> RunningModel:
        model = self._registry.find(name)
        if model.name not in self._running:
            raise Starting
        return self._running[model.name]


def _require_at_most(most: int, field: str, unit: str, length: int) -> None:
    if length > most:
        description = f"must hold at most {most} {unit}, got {length}"
        raise InvalidRequest(FieldViolation(field, description))
