"""Tool calls in Lark: which may be made, and how one is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from service.text.dialect import Turn, quoted
from service.text.dialects.grammars.words import GAP, alternatives
from service.text.json_values import read_object
from service.text.language import JsonSchema, Language
from service.text.tools import NamedTool, Tool, ToolChoice

WriteCall = Callable[[str, str], str]
"""Writes the call of a tool, by its name and the grammar's name for its arguments."""


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls open to a turn: the rule of one call, and the languages of the arguments."""

    rule: str
    parts: tuple[tuple[str, Language], ...]
    several: bool


def open_calls(turn: Turn, write: WriteCall) -> Calls:
    """Return the calls that a turn with a choice of tools may make.

    Raises:
        ValueError: the schema of a tool's arguments is malformed, or none of an object.
    """
    tools = tuple(offered_tools(turn))
    names = [f"arguments_{index}" for index in range(len(tools))]
    return Calls(
        rule=alternatives([write(t.name, f"@{n}") for t, n in zip(tools, names, strict=True)]),
        parts=tuple((n, arguments_language(t)) for t, n in zip(tools, names, strict=True)),
        several=turn.parallel and not isinstance(turn.choice, NamedTool),
    )


def offered_tools(turn: Turn) -> Iterator[Tool]:
    """Yield the tools that the turn may call."""
    for tool in turn.tools:
        match turn.choice:
            case ToolChoice.NONE:
                continue
            case NamedTool(name) if name != tool.name:
                continue
            case _:
                yield tool


def arguments_language(tool: Tool) -> JsonSchema:
    """Return the language of a tool's arguments: objects that its schema accepts.

    Raises:
        ValueError: the schema is malformed, or accepts no object.
    """
    schema = read_object(tool.parameters_json_schema)
    kind = schema.get("type", "object")
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise ValueError('must describe an object: its "type" must be "object"')
    return JsonSchema(json.dumps({**schema, "type": "object"}))


def json_call(name: str, arguments: str, *, key: str, more: str = "") -> str:
    """Write a call as a JSON object of a name and, under `key`, the arguments."""
    colon, comma = f'{GAP} ":" {GAP}', f'{GAP} "," {GAP}'
    named = f'"{{" {GAP} {_string("name")} {colon} {_string(name)}'
    return f'({named} {comma} {_string(key)} {colon} {arguments}{more} {GAP} "}}")'


def _string(text: str) -> str:
    return quoted(f'"{text}"')
