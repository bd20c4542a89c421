"""What both clients share: how to connect, and the request messages of every call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from outrider.chats import Chat, Message, chat_message
from outrider.events import Event, admitted_event, finished_events, round_events
from outrider.options import Options, Prompt
from outrider.requests import generation_message
from outrider.v1.generation_service_pb2 import (
    CompleteRequest,
    StreamGenerateRequest,
    StreamGenerateResponse,
)
from outrider.v1.model_service_pb2 import DetokenizeRequest, RenderChatRequest, TokenizeRequest
from outrider.values import naming, option, text

DEFAULT_ADDRESS = "localhost:50051"
Messages = Sequence[Message | Mapping[str, Any]]

# Pings keep idle connections from being dropped on the way; the server admits one each ten seconds.
CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", 32 * 2**20),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 20_000),
)

MAX_TIMEOUT_SECONDS = 365 * 86_400.0


def call_timeout(options: Options) -> float | None:
    """Return the deadline of a call in seconds from now, None for no deadline.

    Raises:
        TypeError: it is no number.
        ValueError: it is not 0 to a year.
    """
    seconds = options.get("timeout")
    with naming(option("timeout", seconds)):
        if seconds is None or 0.0 <= seconds <= MAX_TIMEOUT_SECONDS:
            return seconds
        raise ValueError(f"must be 0 to {MAX_TIMEOUT_SECONDS:.0f} seconds")


def complete_request(prompt: Prompt, options: Options) -> CompleteRequest:
    """Return the request of a unary generation."""
    generation = generation_message(prompt, options)
    return CompleteRequest(request_id=_request_id(options), generation=generation)


def stream_request(prompt: Prompt, options: Options) -> StreamGenerateRequest:
    """Return the request of a streamed generation."""
    generation = generation_message(prompt, options)
    return StreamGenerateRequest(request_id=_request_id(options), generation=generation)


def _request_id(options: Options) -> str:
    given = options.get("request_id") or ""
    with naming(option("request_id", given)):
        return text(given)


def tokenize_request(text: str, model: str, *, add_special_tokens: bool) -> TokenizeRequest:
    """Return the request to tokenise a text."""
    return TokenizeRequest(model=model, text=text, add_special_tokens=add_special_tokens)


def detokenize_request(
    tokens: Sequence[int], model: str, *, skip_special_tokens: bool
) -> DetokenizeRequest:
    """Return the request for the text of tokens."""
    return DetokenizeRequest(model=model, token_ids=tokens, skip_special_tokens=skip_special_tokens)


def render_request(chat: Chat | Messages, model: str) -> RenderChatRequest:
    """Return the request to render a conversation."""
    whole = chat if isinstance(chat, Chat) else Chat(chat)
    return RenderChatRequest(model=model, chat=chat_message(whole))


def events_of(response: StreamGenerateResponse) -> Iterator[Event]:
    """Yield the events of one response."""
    match response.WhichOneof("event"):
        case "admitted":
            yield admitted_event(response.admitted)
        case "round":
            yield from round_events(response.round)
        case "finished":
            yield from finished_events(response.finished)
        case _:
            return
