"""Calls behind `<|python_tag|>`, in JSON or as `tool.call(key="value")`, as Llama 3 writes them."""

from __future__ import annotations

import re

from service.generation.events import TextDelta
from service.text.dialect import Turn
from service.text.dialects.steps.call_object import CallObject
from service.text.dialects.steps.header import Header
from service.text.dialects.steps.literals import OneOf, Peek
from service.text.dialects.steps.parser import TEXT, Script
from service.text.dialects.steps.prose import Prose
from service.text.dialects.steps.python_call import PythonArguments
from service.text.dialects.steps.reasoning import Calls, offered
from service.text.parser import TextParser

TAG = "<|python_tag|>"
MARKERS = (TAG,)

_CALLS = Calls(
    TAG,
    {
        "call": Peek({"{": "json"}, otherwise="python"),
        "json": CallObject("after"),
        "python": Header(".call(", re.compile(r"(?P<name>[\w-]+)"), "arguments"),
        "arguments": PythonArguments("after"),
        "after": Peek({";": "separator"}, otherwise=TEXT),
        "separator": OneOf({";": "call"}),
    },
)


def llama3_python_parser(turn: Turn) -> TextParser:
    """Return what reads text with calls behind the tag, several of them between `;`."""
    tools = offered(turn)
    return Script(Prose(TextDelta, _CALLS.markers(tools)), _CALLS.steps, tools).parser(TEXT)
