"""The façade that a wire protocol serves: requests in, messages out, on one event loop."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from service.runtime.models import LoadedModel, ModelRegistry
from service.runtime.request import Admitted, ChatMessage, GenerationRequest, Message
from service.runtime.statistics import LiveRequest, RuntimeStatistics
from service.speculation.contract import Tokens


@dataclass(frozen=True, slots=True)
class RuntimeOptions:
    """Bounds of the runtime, each for one model; times are seconds."""

    max_queued_requests: int = 256
    max_outbox_messages: int = 64
    slow_consumer_seconds: float = 10.0
    max_request_seconds: float | None = None


class Generation:
    """One admitted request: its resolved settings, and its messages in order."""

    admitted: Admitted

    def __aiter__(self) -> AsyncIterator[Message]:
        """Yield rounds as they are published, then exactly one Ended or Failed."""
        raise NotImplementedError

    def cancel(self) -> None:
        """Ask the request to end at its next boundary; nothing once it has ended."""
        raise NotImplementedError


class Runtime:
    """Serves the models of a registry; every method belongs to one event loop."""

    def __init__(
        self,
        models: ModelRegistry,
        options: RuntimeOptions,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        raise NotImplementedError

    async def start(self) -> None:
        """Start one engine thread for each model.

        Raises:
            SettingError, UnsupportedCompletionCancellation: a model's options do not fit it.
        """

    async def generate(self, request: GenerationRequest) -> Generation:
        """Validate, prepare and queue a request.

        Raises:
            RequestError: the request cannot be served; violations name fields by their
                path inside the proto message `Generation`.
            ServiceError: the queue is full, or the server drains or has stopped.
        """
        raise NotImplementedError

    def cancel(self, caller: str, request_id: str) -> None:
        """Cancel a live request of a caller.

        Raises:
            NoSuchRequest: it has ended, or never was.
        """

    def models(self) -> tuple[LoadedModel, ...]:
        """Return the models, the default one first."""
        raise NotImplementedError

    def model(self, name: str = "") -> LoadedModel:
        """Return a model by name or alias, the default one where the name is empty.

        Raises:
            UnknownModel: no model has this name.
        """
        raise NotImplementedError

    async def tokenize(self, model: str, text: str, *, add_special_tokens: bool) -> Tokens:
        """Return the tokens of a text, computed off the event loop."""
        raise NotImplementedError

    async def detokenize(self, model: str, tokens: Tokens, *, skip_special_tokens: bool) -> str:
        """Return the text of tokens, computed off the event loop."""
        raise NotImplementedError

    async def render_chat(
        self, model: str, messages: tuple[ChatMessage, ...]
    ) -> tuple[str, Tokens]:
        """Return a conversation as prompt text and its tokens, computed off the event loop."""
        raise NotImplementedError

    def statistics(self, model: str = "") -> RuntimeStatistics:
        """Return a model's statistics as of its last turn; never blocks."""
        raise NotImplementedError

    def live_requests(self) -> tuple[LiveRequest, ...]:
        """Return the requests that have not ended, oldest first."""
        raise NotImplementedError

    @property
    def is_serving(self) -> bool:
        """Whether new requests are taken: started, not draining, every engine running."""
        raise NotImplementedError

    def on_serving_change(self, callback: Callable[[bool], None]) -> None:
        """Call back on the event loop whenever `is_serving` changes."""

    async def drain(self, grace_seconds: float) -> None:
        """Refuse new requests, let live ones end, and fail those left after the grace."""

    async def stop(self) -> None:
        """End every engine thread; live requests fail. Idempotent."""
