"""The client for asyncio; `outrider.client` holds the same for ordinary code."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Self, Unpack

from grpc import aio

from outrider.answers import Answer, answer_of
from outrider.calls import (
    CHANNEL_OPTIONS,
    DEFAULT_ADDRESS,
    Messages,
    call_timeout,
    complete_request,
    detokenize_request,
    events_of,
    render_request,
    stream_request,
    tokenize_request,
)
from outrider.chats import Chat
from outrider.errors import named_errors
from outrider.events import Event, TextDelta
from outrider.options import ChatOptions, Options, Prompt
from outrider.requests import conversation
from outrider.v1.generation_service_pb2 import StreamGenerateRequest, StreamGenerateResponse
from outrider.v1.generation_service_pb2_grpc import GenerationServiceStub
from outrider.v1.model_service_pb2 import ListModelsRequest, Model
from outrider.v1.model_service_pb2_grpc import ModelServiceStub
from outrider.v1.scheduler_service_pb2 import (
    GetLoadRequest,
    GetLoadResponse,
    GetStatisticsRequest,
    GetStatisticsResponse,
)
from outrider.v1.scheduler_service_pb2_grpc import SchedulerServiceStub


class AsyncStream:
    """The events of one generation, as they come; as a context it cancels what still runs."""

    def __init__(
        self, call: aio.UnaryStreamCall[StreamGenerateRequest, StreamGenerateResponse]
    ) -> None:
        self._call = call
        self._cancelled = False
        self._events = self._read()

    def __aiter__(self) -> AsyncIterator[Event]:
        """Yield `Admitted`, each `Round` and its deltas, `Finished`.

        Raises:
            OutriderError: the request failed; what was yielded stays valid.
        """
        return self._events

    async def text(self) -> AsyncIterator[str]:
        """Yield the text of the answer alone, piece by piece."""
        async for event in self:
            if isinstance(event, TextDelta):
                yield event.text

    def cancel(self) -> None:
        """End the request; iteration ends without an error."""
        self._cancelled = True
        self._call.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.cancel()

    async def _read(self) -> AsyncIterator[Event]:
        try:
            with named_errors():
                async for response in self._call:
                    for event in events_of(response):
                        yield event
        except asyncio.CancelledError:
            # gRPC tells a call that was cancelled here as it tells a cancelled task.
            if not self._cancelled or _task_is_cancelled():
                raise
        finally:
            self._call.cancel()


def _task_is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class AsyncClient:
    """Talks to one server over one connection; belongs to one event loop.

    Every call raises an `OutriderError`. The plain stubs are there for what
    this class has no method for.
    """

    def __init__(
        self, address: str = DEFAULT_ADDRESS, *, channel: aio.Channel | None = None
    ) -> None:
        self._channel = channel or aio.insecure_channel(address, options=CHANNEL_OPTIONS)
        self.generation = GenerationServiceStub(self._channel)
        self.model_service = ModelServiceStub(self._channel)
        self.scheduler = SchedulerServiceStub(self._channel)

    async def complete(self, prompt: Prompt, **options: Unpack[Options]) -> Answer:
        """Generate, and return the whole answer."""
        request = complete_request(prompt, options)
        with named_errors():
            response = await self.generation.Complete(request, timeout=call_timeout(options))
        return answer_of(response)

    def stream(self, prompt: Prompt, **options: Unpack[Options]) -> AsyncStream:
        """Generate, and return the events as they come."""
        request = stream_request(prompt, options)
        return AsyncStream(self.generation.StreamGenerate(request, timeout=call_timeout(options)))

    async def chat(self, messages: Messages, **options: Unpack[ChatOptions]) -> Answer:
        """Answer a conversation, whole; `stream(Chat(messages))` answers as it goes."""
        prompt, others = conversation(messages, options)
        return await self.complete(prompt, **others)

    async def models(self) -> tuple[Model, ...]:
        """Return the models, the default one first."""
        with named_errors():
            return tuple((await self.model_service.ListModels(ListModelsRequest())).models)

    async def tokenize(
        self, text: str, *, model: str = "", add_special_tokens: bool = True
    ) -> tuple[int, ...]:
        """Return the tokens of a text."""
        request = tokenize_request(text, model, add_special_tokens=add_special_tokens)
        with named_errors():
            return tuple((await self.model_service.Tokenize(request)).token_ids)

    async def detokenize(
        self, tokens: Sequence[int], *, model: str = "", skip_special_tokens: bool = True
    ) -> str:
        """Return the text of tokens."""
        request = detokenize_request(tokens, model, skip_special_tokens=skip_special_tokens)
        with named_errors():
            return (await self.model_service.Detokenize(request)).text

    async def render_chat(self, chat: Chat | Messages, *, model: str = "") -> str:
        """Return a conversation as the model would be given it."""
        with named_errors():
            return (await self.model_service.RenderChat(render_request(chat, model))).text

    async def statistics(self, model: str = "") -> GetStatisticsResponse:
        """Return what the scheduler has done, and how it is set."""
        with named_errors():
            return await self.scheduler.GetStatistics(GetStatisticsRequest(model=model))

    async def load(self, model: str = "") -> GetLoadResponse:
        """Return how busy the server is."""
        with named_errors():
            return await self.scheduler.GetLoad(GetLoadRequest(model=model))

    async def close(self) -> None:
        """Close the connection; calls in flight are cancelled."""
        await self._channel.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()
