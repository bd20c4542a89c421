"""Messages on channels, as gpt-oss writes them.

A message is a head and a body: `<|start|>assistant<|channel|>CHANNEL<|message|>…<|end|>`. The first
head of a turn lacks what the prompt ends with. A recipient, in the role's part or the channel's,
makes the message a call.
"""

from __future__ import annotations

import re

from service.generation.events import ReasoningDelta, TextDelta
from service.text.dialect import Turn
from service.text.dialects.steps.arguments import JsonArguments
from service.text.dialects.steps.header import Header
from service.text.dialects.steps.literals import OneOf, Peek
from service.text.dialects.steps.parser import TEXT, Script
from service.text.dialects.steps.progress import Step
from service.text.dialects.steps.prose import Prose
from service.text.dialects.steps.reasoning import offered
from service.text.parser import TextParser

START, CHANNEL, CONSTRAIN, MESSAGE = "<|start|>", "<|channel|>", "<|constrain|>", "<|message|>"
END, CALL, RETURN = "<|end|>", "<|call|>", "<|return|>"
MARKERS = (START, CHANNEL, CONSTRAIN, MESSAGE, END, CALL, RETURN)

_ENDS = dict.fromkeys((END, CALL, RETURN), TEXT)
_RECIPIENT = r"(?:to=[\w.-]+\s*)?"
_HEAD = re.compile(
    # What stands in a head at most once may stand in two places: hence the look ahead.
    r"(?:(?=.*to=functions\.(?P<name>[\w-]+))|(?!.*to=))"
    rf"(?:{re.escape(START)})?(?:assistant)?\s*{_RECIPIENT}"
    rf"{re.escape(CHANNEL)}\s*(?P<channel>\w+)\s*{_RECIPIENT}"
    rf"(?:{re.escape(CONSTRAIN)}\s*)?(?:\w+\s*)?",
    re.DOTALL,
)
_CHANNELS = {"analysis": "reasoning", "commentary": "answer", "final": "answer"}

_TEXT = Prose(TextDelta, {START: "head"})
_STEPS: dict[str, Step] = {
    "turn": Peek({"<": "head", "t": "head"}),
    "head": Header(MESSAGE, _HEAD, "call", _CHANNELS),
    "reasoning": Prose(ReasoningDelta, _ENDS, is_exact=True),
    "answer": Prose(TextDelta, _ENDS, is_exact=True),
    "call": JsonArguments("close"),
    "close": OneOf(_ENDS),
}


def harmony_parser(turn: Turn) -> TextParser:
    """Return what reads the analysis as reasoning, calls as calls, and all else as text."""
    return Script(_TEXT, _STEPS, offered(turn)).parser(_first_step(turn.prompt))


def _first_step(prompt: str) -> str:
    """Return where a turn begins: at its first head, unless the prompt has opened a body."""
    head, opened, body = prompt.rpartition(START)[2].partition(MESSAGE)
    if not opened or any(end in body for end in _ENDS):
        return "turn"
    match = _HEAD.fullmatch(head)
    return _CHANNELS.get(match["channel"], TEXT) if match else TEXT
