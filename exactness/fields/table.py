"""Every field that a request can carry, by the message it belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from exactness.fields.chat import CHAT, CHAT_MESSAGE, TOOL, TOOL_CALL, TOOL_CHOICE
from exactness.fields.generation import GENERATION, SPECULATION_SETTINGS, TOKEN_IDS
from exactness.fields.settings import (
    CHOICE,
    CONSTRAINT,
    DRY_SETTINGS,
    GENERATION_SETTINGS,
    MIROSTAT_SETTINGS,
    SEQUENCE_BREAKERS,
    STOP,
    XTC_SETTINGS,
)
from exactness.proof import Proof
from outrider.v1.generation_pb2 import Generation

PROOFS: Mapping[str, Mapping[str, Proof]] = {
    "outrider.v1.Generation": GENERATION,
    "outrider.v1.TokenIds": TOKEN_IDS,
    "outrider.v1.SpeculationSettings": SPECULATION_SETTINGS,
    "outrider.v1.GenerationSettings": GENERATION_SETTINGS,
    "outrider.v1.DrySettings": DRY_SETTINGS,
    "outrider.v1.SequenceBreakers": SEQUENCE_BREAKERS,
    "outrider.v1.XtcSettings": XTC_SETTINGS,
    "outrider.v1.MirostatSettings": MIROSTAT_SETTINGS,
    "outrider.v1.Stop": STOP,
    "outrider.v1.Constraint": CONSTRAINT,
    "outrider.v1.Constraint.Choice": CHOICE,
    "outrider.v1.Chat": CHAT,
    "outrider.v1.ChatMessage": CHAT_MESSAGE,
    "outrider.v1.Tool": TOOL,
    "outrider.v1.ToolChoice": TOOL_CHOICE,
    "outrider.v1.ToolCall": TOOL_CALL,
}


def fields_of_a_request() -> Iterator[FieldDescriptor]:
    """Yield every field of a request that holds a value of its own, each once.

    One that holds a message of this contract is as good as that message's fields, unless it has
    none.
    """
    seen: set[str] = set()
    waiting: list[Descriptor] = [Generation.DESCRIPTOR]
    while waiting:
        message = waiting.pop()
        if message.full_name in seen:
            continue
        seen.add(message.full_name)
        for field in message.fields:
            inner = field.message_type
            if inner is None or not _has_own_fields(inner):
                yield field
            else:
                waiting.append(inner)


def _has_own_fields(message: Descriptor) -> bool:
    is_ours = message.full_name.startswith("outrider.") and not message.GetOptions().map_entry
    return is_ours and bool(message.fields)
