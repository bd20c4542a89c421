"""Calls behind `[TOOL_CALLS]` and reasoning in `[THINK]`, as Mistral's models write them.

Earlier models write all calls as one JSON list; since version 11 of the tokenizer each call has its
own marker, then its name, perhaps an id, and its arguments.
"""

from __future__ import annotations

import re

from service.generation.events import ReasoningDelta, TextDelta
from service.text.dialect import Turn
from service.text.dialects.steps.arguments import JsonArguments
from service.text.dialects.steps.call_object import CallObject
from service.text.dialects.steps.header import Header
from service.text.dialects.steps.literals import OneOf
from service.text.dialects.steps.parser import TEXT, Script
from service.text.dialects.steps.prose import Prose
from service.text.dialects.steps.reasoning import Calls, ends_with, offered
from service.text.parser import TextParser

OPEN, CALL_ID, ARGS = "[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"
TAGS = ("[THINK]", "[/THINK]")
MARKERS = (*TAGS, OPEN, CALL_ID, ARGS)

_LIST = Calls(
    OPEN,
    {
        "list": OneOf({"[": "call"}),
        "call": CallObject("after"),
        "after": OneOf({",": "call", "]": TEXT}),
    },
)
_HEAD = re.compile(rf"\s*(?P<name>[\w.-]+)\s*(?:{re.escape(CALL_ID)}\s*(?P<id>[\w-]*)\s*)?")
_EACH = Calls(OPEN, {"head": Header(ARGS, _HEAD, "arguments"), "arguments": JsonArguments(TEXT)})


def mistral_parser(turn: Turn) -> TextParser:
    """Return what reads `[TOOL_CALLS][{"name": …, "arguments": {…}}, …]`."""
    return _parser(turn, _LIST)


def mistral_args_parser(turn: Turn) -> TextParser:
    """Return what reads `[TOOL_CALLS]name[ARGS]{…}`, any number of times."""
    return _parser(turn, _EACH)


def _parser(turn: Turn, calls: Calls) -> TextParser:
    """Reasoning may open anywhere in the text, as these models are trained to."""
    tools = offered(turn)
    opening, closing = TAGS
    text = Prose(TextDelta, {opening: "reasoning", **calls.markers(tools)})
    reasoning = Prose(ReasoningDelta, {closing: TEXT})
    script = Script(text, {"reasoning": reasoning, **calls.steps}, tools)
    return script.parser("reasoning" if ends_with(turn.prompt, opening) else TEXT)
