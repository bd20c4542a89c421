"""What is wrong with a conversation, found before its template sees it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from service.errors import FieldViolation
from service.text.conversation import ChatMessage, Conversation
from service.text.json_values import MAX_DEPTH, is_too_deep, parts, read_object
from service.text.tools import Tool

MOST_OF_A_PART = 16
"""How much is named of what is wrong with one part, so that it hides none of another."""
TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class ChatLimits:
    """Bounds of a conversation.

    `max_characters` holds for the messages, the tools, the template's further arguments, and what
    is rendered of them.
    """

    max_messages: int = 4096
    max_tools: int = 128
    max_characters: int = 16 * 1024 * 1024


USUAL_LIMITS = ChatLimits()


@dataclass(frozen=True, slots=True)
class TemplateNames:
    """The names in a template: those a client may not set, the variables it reads, its strings.

    `strings` are its string constants and attributes, one of which any key of a turn must be that
    it shows.
    """

    reserved: Collection[str]
    variables: Collection[str]
    strings: Collection[str]


def conversation_violations(
    conversation: Conversation, names: TemplateNames, limits: ChatLimits, field: str
) -> Iterator[FieldViolation]:
    """Yield what is wrong, each under its own path inside `field`."""
    sized = list(_size_violations(conversation, limits, field))
    if sized:
        yield from sized
        return
    parts = (
        _argument_violations(conversation, names, field),
        _tool_violations(conversation.tools, f"{field}.tools"),
        _turn_violations(conversation.messages, names, f"{field}.messages"),
    )
    for part in parts:
        yield from islice(part, MOST_OF_A_PART)


def _size_violations(
    conversation: Conversation, limits: ChatLimits, field: str
) -> Iterator[FieldViolation]:
    messages, tools = conversation.messages, conversation.tools
    if not messages:
        yield FieldViolation(f"{field}.messages", "must not be empty")
    counts = (
        ("messages", len(messages), limits.max_messages),
        ("tools", len(tools), limits.max_tools),
    )
    for part, count, most in counts:
        if count > most:
            yield FieldViolation(f"{field}.{part}", f"at most {most} {part}, got {count}")
            return
    lengths = (
        ("messages", sum(map(_turn_length, messages))),
        ("tools", sum(map(_tool_length, tools))),
        ("template_arguments", _value_length(dict(conversation.template_arguments))),
    )
    most = limits.max_characters
    for part, length in lengths:
        if length > most:
            yield FieldViolation(f"{field}.{part}", f"at most {most} characters, got {length}")


def _turn_length(turn: ChatMessage) -> int:
    calls = sum(
        len(call.id) + len(call.name) + len(call.arguments_json) for call in turn.tool_calls
    )
    said = len(turn.role) + len(turn.content) + len(turn.reasoning or "")
    return said + len(turn.tool_call_id or "") + calls


def _tool_length(tool: Tool) -> int:
    return len(tool.name) + len(tool.description) + len(tool.parameters_json_schema)


def _value_length(value: object) -> int:
    """Return the characters of a value's texts and names, and one for each value in it."""
    length, waiting = 0, [value]
    while waiting:
        value = waiting.pop()
        waiting.extend(parts(value))
        length += 1 + (len(value) if isinstance(value, str) else 0)
        length += sum(map(len, value)) if isinstance(value, dict) else 0
    return length


def _argument_violations(
    conversation: Conversation, names: TemplateNames, field: str
) -> Iterator[FieldViolation]:
    for name, value in conversation.template_arguments.items():
        where = f"{field}.template_arguments.{name}"
        if name in names.reserved:
            yield FieldViolation(where, "is a name that the template already receives")
        elif name not in names.variables:
            yield FieldViolation(where, "is no variable of this model's chat template")
        elif is_too_deep(value):
            yield FieldViolation(where, f"must not nest deeper than {MAX_DEPTH}")


def _tool_violations(tools: Sequence[Tool], field: str) -> Iterator[FieldViolation]:
    seen: set[str] = set()
    for index, tool in enumerate(tools):
        where = f"{field}[{index}]"
        yield from _name_violations(tool.name, f"{where}.name")
        if tool.name in seen:
            yield FieldViolation(f"{where}.name", f"{tool.name!r} is the name of an earlier tool")
        seen.add(tool.name)
        yield from _json_violations(tool.parameters_json_schema, f"{where}.parameters_json_schema")


def _turn_violations(
    messages: Sequence[ChatMessage], names: TemplateNames, field: str
) -> Iterator[FieldViolation]:
    made: set[str] = set()
    for index, turn in enumerate(messages):
        where = f"{field}[{index}]"
        if not turn.role:
            yield FieldViolation(f"{where}.role", "must not be empty")
        if turn.tool_calls and "tool_calls" not in names.strings:
            unseen = "this model's chat template does not show tool calls"
            yield FieldViolation(f"{where}.tool_calls", unseen)
        if turn.tool_call_id is not None and turn.tool_call_id not in made:
            unknown = f"no earlier turn made a call with the id {turn.tool_call_id!r}"
            yield FieldViolation(f"{where}.tool_call_id", unknown)
        yield from _call_violations(turn, where)
        made |= {call.id for call in turn.tool_calls}


def _call_violations(turn: ChatMessage, field: str) -> Iterator[FieldViolation]:
    seen: set[str] = set()
    for index, call in enumerate(turn.tool_calls):
        where = f"{field}.tool_calls[{index}]"
        if call.id and call.id in seen:
            yield FieldViolation(f"{where}.id", f"{call.id!r} is the id of an earlier call")
        seen.add(call.id)
        yield from _name_violations(call.name, f"{where}.name")
        yield from _json_violations(call.arguments_json, f"{where}.arguments_json")


def _name_violations(name: str, field: str) -> Iterator[FieldViolation]:
    if not TOOL_NAME.fullmatch(name):
        yield FieldViolation(field, "must be 1 to 64 letters, digits, _ or -")


def _json_violations(text: str, field: str) -> Iterator[FieldViolation]:
    try:
        read_object(text)
    except ValueError as refused:
        yield FieldViolation(field, str(refused))
