"""A turn that is one JSON call, as Llama 3 writes it; further calls may follow after `;`."""

from __future__ import annotations

from service.generation.events import TextDelta
from service.text.dialect import Turn
from service.text.dialects.steps.call_object import CallObject
from service.text.dialects.steps.literals import OneOf, Peek
from service.text.dialects.steps.parser import TEXT, Script
from service.text.dialects.steps.progress import Step
from service.text.dialects.steps.prose import Prose
from service.text.dialects.steps.reasoning import offered
from service.text.parser import TextParser

MARKERS = ()

_STEPS: dict[str, Step] = {
    "turn": Peek({"{": "call"}),
    "call": CallObject("after"),
    "after": Peek({";": "separator"}, otherwise=TEXT),
    "separator": OneOf({";": "call"}),
}


def llama3_json_parser(turn: Turn) -> TextParser:
    """Return what reads a turn as a call if it begins with a brace, else as text."""
    tools = offered(turn)
    return Script(Prose(TextDelta, {}), _STEPS, tools).parser("turn" if tools else TEXT)
