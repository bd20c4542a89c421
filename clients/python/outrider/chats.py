"""Conversations as prompts: turns, tools, and calls of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

from outrider.v1 import chat_pb2


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
        messages=map(_turn, chat.messages),
        tools=map(_tool, chat.tools),
        tool_choice=_choice(chat.tool_choice),
        parallel_tool_calls=chat.parallel_tool_calls,
        dialect=chat.dialect,
    )
    message.template_arguments.update(chat.template_arguments)
    if not chat.template_arguments:
        message.ClearField("template_arguments")
    return message


def json_text(value: Mapping[str, Any] | str) -> str:
    """Return a JSON text, given as it is or as what it spells."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _turn(given: Message | Mapping[str, Any]) -> chat_pb2.ChatMessage:
    turn = given if isinstance(given, Message) else Message(**given)
    calls = (each if isinstance(each, ToolCall) else ToolCall(**each) for each in turn.tool_calls)
    return chat_pb2.ChatMessage(
        role=turn.role,
        content=turn.content,
        reasoning=turn.reasoning,
        tool_calls=[
            chat_pb2.ToolCall(id=call.id, name=call.name, arguments_json=call.arguments_json)
            for call in calls
        ],
        tool_call_id=turn.tool_call_id,
    )


def _tool(given: Tool | Mapping[str, Any]) -> chat_pb2.Tool:
    tool = given if isinstance(given, Tool) else Tool(**given)
    schema = json_text(tool.parameters)
    return chat_pb2.Tool(
        name=tool.name, description=tool.description, parameters_json_schema=schema
    )


def _choice(given: ToolChoice | None) -> chat_pb2.ToolChoice | None:
    if given is None:
        return None
    if isinstance(given, str):
        mode = chat_pb2.ToolChoiceMode.Value(f"TOOL_CHOICE_MODE_{given.upper()}")
        return chat_pb2.ToolChoice(mode=mode)
    return chat_pb2.ToolChoice(**given)
