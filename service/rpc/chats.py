"""Conversations from the wire: turns, tools, the choice among them, template arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct

from outrider.v1 import chat_pb2
from service.runtime.request import ChatPrompt
from service.text.conversation import ChatMessage
from service.text.tools import NamedTool, Tool, ToolCall, ToolChoice

_CHOICES: Mapping[int, ToolChoice | None] = {
    chat_pb2.TOOL_CHOICE_MODE_UNSPECIFIED: None,
    chat_pb2.TOOL_CHOICE_MODE_AUTO: ToolChoice.AUTO,
    chat_pb2.TOOL_CHOICE_MODE_NONE: ToolChoice.NONE,
    chat_pb2.TOOL_CHOICE_MODE_REQUIRED: ToolChoice.REQUIRED,
}
CHOICE_MODES = frozenset(_CHOICES)

_EXACT_BELOW = 2.0**53
"""Whole numbers up to here are what was sent; beyond it a double has no exact neighbours."""


def chat_prompt(chat: chat_pb2.Chat) -> ChatPrompt:
    """Convert a valid conversation."""
    parallel = chat.parallel_tool_calls if chat.HasField("parallel_tool_calls") else True
    return ChatPrompt(
        messages=tuple(map(_turn, chat.messages)),
        tools=tuple(
            Tool(tool.name, tool.description, tool.parameters_json_schema) for tool in chat.tools
        ),
        tool_choice=_choice(chat.tool_choice),
        parallel_tool_calls=parallel,
        template_arguments=plain_values(chat.template_arguments),
        dialect=chat.dialect,
    )


def plain_values(struct: Struct) -> dict[str, object]:
    """Return a Struct's values; a number without a fraction is an integer to a template."""
    return {name: _whole(value) for name, value in MessageToDict(struct).items()}


def _whole(value: Any) -> Any:
    match value:
        case float() if value.is_integer() and abs(value) <= _EXACT_BELOW:
            return int(value)
        case list():
            return [_whole(item) for item in value]
        case dict():
            return {name: _whole(item) for name, item in value.items()}
        case _:
            return value


def _turn(turn: chat_pb2.ChatMessage) -> ChatMessage:
    return ChatMessage(
        role=turn.role,
        content=turn.content,
        reasoning=turn.reasoning if turn.HasField("reasoning") else None,
        tool_calls=tuple(
            ToolCall(call.id, call.name, call.arguments_json) for call in turn.tool_calls
        ),
        tool_call_id=turn.tool_call_id if turn.HasField("tool_call_id") else None,
    )


def _choice(choice: chat_pb2.ToolChoice) -> ToolChoice | NamedTool | None:
    if choice.WhichOneof("choice") == "name":
        return NamedTool(choice.name)
    return _CHOICES[choice.mode]
