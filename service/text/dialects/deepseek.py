"""Calls between DeepSeek's markers, after reasoning between `<think>` and `</think>`.

V3 and R1 write the kind of tool before its name, and the arguments as a block of code; V3.1 writes
the name and the arguments alone.
"""

from __future__ import annotations

import re

from service.text.dialect import Turn
from service.text.dialects.steps.arguments import JsonArguments
from service.text.dialects.steps.header import Header
from service.text.dialects.steps.literals import OneOf
from service.text.dialects.steps.parser import TEXT
from service.text.dialects.steps.reasoning import Calls, tagged
from service.text.dialects.think import TAGS
from service.text.parser import TextParser


def _marker(words: str) -> str:
    bar = "\N{FULLWIDTH VERTICAL LINE}"
    return f"<{bar}{words.replace(' ', '▁')}{bar}>"


OPEN, CLOSE = _marker("tool calls begin"), _marker("tool calls end")
CALL_OPEN, CALL_CLOSE = _marker("tool call begin"), _marker("tool call end")
SEPARATOR = _marker("tool sep")
FENCE_OPEN, FENCE_CLOSE = "```json", "```"
MARKERS = (*TAGS, OPEN, CLOSE, CALL_OPEN, SEPARATOR, CALL_CLOSE)

_NAME = r"\s*(?P<name>[\w.-]+)\s*"


def _calls(head: Header, after_arguments: str) -> Calls:
    return Calls(
        OPEN,
        {
            "calls": OneOf({CALL_OPEN: "head"}),
            "head": head,
            "arguments": JsonArguments("close"),
            "close": OneOf({after_arguments: "after"}),
            "after": OneOf({CALL_OPEN: "head", CLOSE: TEXT}),
        },
    )


_FENCED = re.compile(rf"\s*function\s*{SEPARATOR}{_NAME}")
_V3 = _calls(Header(FENCE_OPEN, _FENCED, "arguments"), FENCE_CLOSE + CALL_CLOSE)
_V31 = _calls(Header(SEPARATOR, re.compile(_NAME), "arguments"), CALL_CLOSE)


def deepseek_v3_parser(turn: Turn) -> TextParser:
    """Return what reads reasoning, then text and calls as V3 and R1 write them."""
    return tagged(turn, TAGS, _V3)


def deepseek_v31_parser(turn: Turn) -> TextParser:
    """Return what reads reasoning, then text and calls as V3.1 writes them."""
    return tagged(turn, TAGS, _V31)
