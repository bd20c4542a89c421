"""What the fields of one message must satisfy together: what must be set, what excludes what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from outrider.v1 import settings_pb2

Complaint = tuple[str, str]


def _start_or_cancel(message: Any) -> Iterator[Complaint]:
    if not message.request_id:
        yield "request_id", "must not be empty"
    if message.WhichOneof("action") is None:
        yield "action", "start or cancel must be set"


def _generation(message: Any) -> Iterator[Complaint]:
    if not message.HasField("generation"):
        yield "generation", "must be set"


def _prompt(message: Any) -> Iterator[Complaint]:
    if message.WhichOneof("prompt") is None:
        yield "prompt", "text, token_ids or chat must be set"


def _ids(message: Any) -> Iterator[Complaint]:
    if not message.ids:
        yield "ids", "must not be empty"


def _chat(message: Any) -> Iterator[Complaint]:
    if not message.HasField("chat"):
        yield "chat", "must be set"


def _messages(message: Any) -> Iterator[Complaint]:
    if not message.messages:
        yield "messages", "must not be empty"


def _role(message: Any) -> Iterator[Complaint]:
    if not message.role:
        yield "role", "must not be empty"


def _stop(message: Any) -> Iterator[Complaint]:
    if message.WhichOneof("stop") is None:
        yield "stop", "text or token_id must be set"


def _sampling(message: Any) -> Iterator[Complaint]:
    if message.do_sample and message.HasField("temperature") and message.temperature == 0.0:
        yield "temperature", "must be above 0 when do_sample is true"


def _no_speculation(message: Any) -> Iterator[Complaint]:
    if message.mode != settings_pb2.SPECULATION_MODE_NONE:
        return
    for field in ("proposer", "num_speculative_tokens"):
        if message.HasField(field):
            yield field, "contradicts SPECULATION_MODE_NONE"


CONTRADICTIONS: Mapping[str, Callable[[Any], Iterator[Complaint]]] = {
    "outrider.v1.GenerateRequest": _start_or_cancel,
    "outrider.v1.StreamGenerateRequest": _generation,
    "outrider.v1.CompleteRequest": _generation,
    "outrider.v1.Generation": _prompt,
    "outrider.v1.TokenIds": _ids,
    "outrider.v1.Chat": _messages,
    "outrider.v1.ChatMessage": _role,
    "outrider.v1.Stop": _stop,
    "outrider.v1.GenerationSettings": _sampling,
    "outrider.v1.SpeculationSettings": _no_speculation,
    "outrider.v1.RenderChatRequest": _chat,
}
