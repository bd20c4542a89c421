"""Requests in a few words, and what is refused of them."""

import pytest
from google.protobuf.message import Message

from outrider.v1 import (
    chat_pb2,
    generation_pb2,
    settings_pb2,
)
from service.errors import InvalidRequest, UnsupportedField
from service.rpc.validation import validate

Settings = settings_pb2.GenerationSettings
Speculation = settings_pb2.SpeculationSettings
Generation = generation_pb2.Generation
Stop = settings_pb2.Stop
Constraint = settings_pb2.Constraint
Dry = settings_pb2.DrySettings
Breakers = settings_pb2.SequenceBreakers
Xtc = settings_pb2.XtcSettings
Mirostat = settings_pb2.MirostatSettings
Chat = chat_pb2.Chat
Turn = chat_pb2.ChatMessage
Tool = chat_pb2.Tool
ToolCall = chat_pb2.ToolCall
ToolChoice = chat_pb2.ToolChoice
NONE = ToolChoice(mode=chat_pb2.TOOL_CHOICE_MODE_NONE)
REQUIRED = ToolChoice(mode=chat_pb2.TOOL_CHOICE_MODE_REQUIRED)


def generation(**fields: object) -> Generation:
    return Generation(**{"text": "once", **fields})


def settings(**fields: object) -> Generation:
    return generation(settings=Settings(**fields))


def chat(*turns: Turn, **fields: object) -> Generation:
    return Generation(chat=Chat(messages=turns or [Turn(role="user")], **fields))


def choices(*texts: str) -> Constraint:
    return Constraint(choice=Constraint.Choice(texts=texts))


def violations(message: Message) -> dict[str, str]:
    with pytest.raises((InvalidRequest, UnsupportedField)) as caught:
        validate(message)
    return {violation.field: violation.description for violation in caught.value.violations}


def fields_refused(message: Message) -> set[str]:
    with pytest.raises(InvalidRequest) as caught:
        validate(message)
    return {violation.field for violation in caught.value.violations}
