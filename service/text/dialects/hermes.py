"""Calls as JSON objects between `<tool_call>` and `</tool_call>`, as Hermes and Qwen write them."""

from __future__ import annotations

from service.text.dialect import Turn
from service.text.dialects.steps.call_object import CallObject
from service.text.dialects.steps.literals import OneOf
from service.text.dialects.steps.parser import TEXT
from service.text.dialects.steps.reasoning import Calls, tagged
from service.text.dialects.think import TAGS
from service.text.parser import TextParser

OPEN, CLOSE = "<tool_call>", "</tool_call>"
MARKERS = (*TAGS, OPEN, CLOSE)

_CALLS = Calls(OPEN, {"call": CallObject("close"), "close": OneOf({CLOSE: TEXT})})


def hermes_parser(turn: Turn) -> TextParser:
    """Return what reads reasoning, then text with any number of calls."""
    return tagged(turn, TAGS, _CALLS)
