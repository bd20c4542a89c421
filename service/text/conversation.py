"""A conversation as a chat template receives it: plain values, in the shape that templates know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from service.text.json_values import read_object
from service.text.tools import Tool, ToolCall

RECEIVED = ("messages", "tools", "add_generation_prompt", "bos_token", "eos_token")
"""The variables that every template receives."""

REASONING_NAMES = ("reasoning_content", "thinking")
"""What templates call the reasoning of a turn."""


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One turn of a conversation; `tool_call_id` names the call that a tool's turn answers."""

    role: str
    content: str
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


class Conversation(Protocol):
    """All that a client says to a template."""

    @property
    def messages(self) -> Sequence[ChatMessage]:
        """Return the turns, oldest first."""

    @property
    def tools(self) -> Sequence[Tool]:
        """Return the tools on offer."""

    @property
    def template_arguments(self) -> Mapping[str, object]:
        """Return further variables of the template."""


class Arguments(dict[str, object]):
    """The arguments of a call: an object to most templates, JSON text to those that write it out.

    Templates of both kinds exist, and nothing else tells them apart.
    """

    def __init__(self, json_text: str) -> None:
        super().__init__(read_object(json_text))
        self._json = json_text or "{}"

    def __str__(self) -> str:
        return self._json

    def __add__(self, text: str) -> str:
        return self._json + text

    def __radd__(self, text: str) -> str:
        return text + self._json


def template_values(conversation: Conversation, silence: str | None) -> dict[str, object]:
    """Return the variables of a conversation whose JSON is valid.

    `silence` is the content of a turn that only calls tools.
    """
    names: dict[str, str] = {}
    messages = []
    for turn in conversation.messages:
        names |= {call.id: call.name for call in turn.tool_calls}
        messages.append(_turn(turn, names, silence))
    return {
        **conversation.template_arguments,
        "messages": messages,
        "tools": [_tool(tool) for tool in conversation.tools] or None,
    }


def _turn(turn: ChatMessage, names: Mapping[str, str], silence: str | None) -> dict[str, object]:
    """Return one turn; what it lacks has no key, because templates ask whether there is one."""
    value: dict[str, object] = {"role": turn.role, "content": turn.content}
    if turn.reasoning is not None:
        value |= dict.fromkeys(REASONING_NAMES, turn.reasoning)
    if turn.tool_calls:
        value["tool_calls"] = [call_value(call) for call in turn.tool_calls]
        value["content"] = turn.content or silence
    if turn.tool_call_id is not None:
        value |= {"tool_call_id": turn.tool_call_id, "name": names[turn.tool_call_id]}
    return value


def call_value(call: ToolCall) -> dict[str, object]:
    """Return a call as templates read it; its arguments are an object."""
    function = {"name": call.name, "arguments": Arguments(call.arguments_json)}
    return {"id": call.id, "type": "function", "function": function}


def _tool(tool: Tool) -> dict[str, object]:
    parameters = read_object(tool.parameters_json_schema) or {"type": "object", "properties": {}}
    described = {"name": tool.name, "description": tool.description, "parameters": parameters}
    return {"type": "function", "function": described}
