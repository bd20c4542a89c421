"""Conversations as prompts: turns, tools, and calls of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

from outrider.v1 import chat_pb2
from outrider.values import each, json_text, naming, option, part, text, value_of


class NamedTool(TypedDict):
    """The choice of one tool."""

    name: str


ToolChoice = Literal["auto", "none", "required"] | NamedTool


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A complete tool call; `arguments_json` is one JSON object."""

    id: str
    name: str
    arguments_json: str

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the arguments.

        Raises:
            ValueError: they are no JSON.
        """
        arguments: dict[str, Any] = json.loads(self.arguments_json)
        return arguments


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation; `role` is as the model's chat template knows it.

    `tool_call_id` says which call a turn of role `tool` answers.
    """

    role: str
    content: str = ""
    reasoning: str | None = None
    tool_calls: Sequence[ToolCall | Mapping[str, str]] = ()
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool offered to the model; `parameters` is a JSON Schema, absent for any object."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] | str = ""


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation as a prompt; a mapping in place of a turn or a tool has the same keys.

    What is None, or empty, is left to the server, as the contract's `Chat` says.
    """

    messages: Sequence[Message | Mapping[str, Any]]
    tools: Sequence[Tool | Mapping[str, Any]] = ()
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    template_arguments: Mapping[str, Any] = field(default_factory=dict)
    dialect: str = ""


def chat_message(chat: Chat) -> chat_pb2.Chat:
    """Return a conversation as a message.

    Raises:
        TypeError: a turn or a tool has other keys than it may have.
        ValueError: a value does not fit its field.
    """
    message = chat_pb2.Chat(
        messages=each("messages", chat.messages, _turn),
        tools=each("tools", chat.tools, _tool),
        tool_choice=_choice(chat.tool_choice),
        parallel_tool_calls=chat.parallel_tool_calls,
        dialect=chat.dialect,
    )
    if chat.template_arguments:
        with naming(option("template_arguments", chat.template_arguments)):
            message.template_arguments.update({**chat.template_arguments})
    return message


def _turn(given: Message | Mapping[str, Any]) -> chat_pb2.ChatMessage:
    turn = part(Message, given)
    if turn.content is not None:
        with naming("content"):
            text(turn.content)
    return chat_pb2.ChatMessage(
        role=turn.role,
        content=turn.content,
        reasoning=turn.reasoning,
        tool_calls=each("tool_calls", turn.tool_calls, _call),
        tool_call_id=turn.tool_call_id,
    )


def _call(given: ToolCall | Mapping[str, str]) -> chat_pb2.ToolCall:
    call = part(ToolCall, given)
    return chat_pb2.ToolCall(id=call.id, name=call.name, arguments_json=call.arguments_json)


def _tool(given: Tool | Mapping[str, Any]) -> chat_pb2.Tool:
    tool = part(Tool, given)
    schema = json_text(tool.parameters)
    return chat_pb2.Tool(
        name=tool.name, description=tool.description, parameters_json_schema=schema
    )


def _choice(given: ToolChoice | None) -> chat_pb2.ToolChoice | None:
    if given is None:
        return None
    with naming(option("tool_choice", given)):
        own: dict[str, Any] = {"mode": _mode(given)} if isinstance(given, str) else {**given}
        return chat_pb2.ToolChoice(**own)


def _mode(name: str) -> int:
    try:
        return value_of(chat_pb2.ToolChoiceMode.DESCRIPTOR, name)
    except ValueError as unknown:
        raise ValueError(f'{unknown}; a tool is chosen by {{"name": …}}') from unknown
