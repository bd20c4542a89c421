"""The client for ordinary code; `outrider.aio` holds the same for asyncio."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Protocol, Self, Unpack

import grpc

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
from outrider.errors import Cancelled, named_errors
from outrider.events import Event, TextDelta
from outrider.options import ChatOptions, Options, Prompt
from outrider.requests import conversation
from outrider.v1.generation_service_pb2 import StreamGenerateResponse
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


class _Call(Protocol):
    """A streaming call, as far as it is used here."""

    def __iter__(self) -> Iterator[StreamGenerateResponse]: ...
    def cancel(self) -> object: ...


class Stream:
    """The events of one generation, as they come; as a context it cancels what still runs."""

    def __init__(self, call: _Call) -> None:
        self._call = call
        self._cancelled = False
        self._events = self._read()

    def __iter__(self) -> Iterator[Event]:
        """Yield `Admitted`, each `Round` and its deltas, `Finished`.

        Raises:
            OutriderError: the request failed; what was yielded stays valid.
        """
        return self._events

    def text(self) -> Iterator[str]:
        """Yield the text of the answer alone, piece by piece."""
        return (event.text for event in self if isinstance(event, TextDelta))

    def cancel(self) -> None:
        """End the request; iteration ends without an error."""
        self._cancelled = True
        self._call.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.cancel()

    def _read(self) -> Iterator[Event]:
        try:
            with named_errors():
                for response in self._call:
                    yield from events_of(response)
        except Cancelled:
            if not self._cancelled:
                raise
        finally:
            self._call.cancel()


class Client:
    """Talks to one server over one connection; safe to share between threads.

    Every call raises an `OutriderError`. The plain stubs are there for what
    this class has no method for.
    """

    def __init__(
        self, address: str = DEFAULT_ADDRESS, *, channel: grpc.Channel | None = None
    ) -> None:
        self._channel = channel or grpc.insecure_channel(address, options=CHANNEL_OPTIONS)
        self.generation = GenerationServiceStub(self._channel)
        self.model_service = ModelServiceStub(self._channel)
        self.scheduler = SchedulerServiceStub(self._channel)

    def complete(self, prompt: Prompt, **options: Unpack[Options]) -> Answer:
        """Generate, and return the whole answer."""
        request = complete_request(prompt, options)
        with named_errors():
            return answer_of(self.generation.Complete(request, timeout=call_timeout(options)))

    def stream(self, prompt: Prompt, **options: Unpack[Options]) -> Stream:
        """Generate, and return the events as they come."""
        request = stream_request(prompt, options)
        return Stream(self.generation.StreamGenerate(request, timeout=call_timeout(options)))

    def chat(self, messages: Messages, **options: Unpack[ChatOptions]) -> Answer:
        """Answer a conversation, whole; `stream(Chat(messages))` answers as it goes."""
        prompt, others = conversation(messages, options)
        return self.complete(prompt, **others)

    def models(self) -> tuple[Model, ...]:
        """Return the models, the default one first."""
        with named_errors():
            return tuple(self.model_service.ListModels(ListModelsRequest()).models)

    def tokenize(
        self, text: str, *, model: str = "", add_special_tokens: bool = True
    ) -> tuple[int, ...]:
        """Return the tokens of a text."""
        request = tokenize_request(text, model, add_special_tokens=add_special_tokens)
        with named_errors():
            return tuple(self.model_service.Tokenize(request).token_ids)

    def detokenize(
        self, tokens: Sequence[int], *, model: str = "", skip_special_tokens: bool = True
    ) -> str:
        """Return the text of tokens."""
        request = detokenize_request(tokens, model, skip_special_tokens=skip_special_tokens)
        with named_errors():
            return self.model_service.Detokenize(request).text

    def render_chat(self, chat: Chat | Messages, *, model: str = "") -> str:
        """Return a conversation as the model would be given it."""
        with named_errors():
            return self.model_service.RenderChat(render_request(chat, model)).text

    def statistics(self, model: str = "") -> GetStatisticsResponse:
        """Return what the scheduler has done, and how it is set."""
        with named_errors():
            return self.scheduler.GetStatistics(GetStatisticsRequest(model=model))

    def load(self, model: str = "") -> GetLoadResponse:
        """Return how busy the server is."""
        with named_errors():
            return self.scheduler.GetLoad(GetLoadRequest(model=model))

    def close(self) -> None:
        """Close the connection; calls in flight are cancelled."""
        self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
