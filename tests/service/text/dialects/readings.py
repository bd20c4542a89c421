"""Reads outputs through a parser in pieces, and says what came of it."""

import re
from dataclasses import dataclass, field

from service.generation.events import (
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallEnd,
    ToolCallStart,
)
from service.text.dialect import Turn
from service.text.dialects import (
    deepseek,
    harmony,
    hermes,
    llama3_json,
    llama3_python,
    mistral,
    think,
)
from service.text.tools import Tool, ToolChoice

PARSERS = {
    "think": (think.think_parser, think.MARKERS),
    "hermes": (hermes.hermes_parser, hermes.MARKERS),
    "llama3_json": (llama3_json.llama3_json_parser, llama3_json.MARKERS),
    "llama3_python": (llama3_python.llama3_python_parser, llama3_python.MARKERS),
    "mistral": (mistral.mistral_parser, mistral.MARKERS),
    "mistral_args": (mistral.mistral_args_parser, mistral.MARKERS),
    "deepseek_v3": (deepseek.deepseek_v3_parser, deepseek.MARKERS),
    "deepseek_v31": (deepseek.deepseek_v31_parser, deepseek.MARKERS),
    "harmony": (harmony.harmony_parser, harmony.MARKERS),
}
TOOLS = (Tool("weather"), Tool("brave_search"))
OFFERED = Turn("", TOOLS, ToolChoice.AUTO)


@dataclass(frozen=True)
class Mark:
    """A marker that is one special token."""

    marker: str


@dataclass(frozen=True)
class Case:
    """An output of a dialect, and the events that it is."""

    id: str
    dialect: str
    text: str
    events: tuple[object, ...]
    turn: Turn = field(default=OFFERED)

    def parser(self):
        return PARSERS[self.dialect][0](self.turn)

    def pieces(self):
        """Return the text with each marker a token of its own."""
        markers = PARSERS[self.dialect][1]
        pattern = "|".join(map(re.escape, markers)) or "(?!)"
        return [
            Mark(piece) if piece in markers else piece
            for piece in re.split(f"({pattern})", self.text)
            if piece
        ]


def thought(text):
    return (ReasoningDelta(text),)


def said(text):
    return (TextDelta(text),)


def called(arguments, index=0, name="weather", named=""):
    start = ToolCallStart(index, named or f"call_{index}", name)
    return (start, ToolArgumentsDelta(index, arguments), ToolCallEnd())


def broken_off(arguments, index=0, name="weather"):
    return called(arguments, index, name)[: 2 if arguments else 1]


def read(parser, pieces):
    """Return the events of an output that comes in pieces, with deltas of a kind joined."""
    events = []
    for piece in pieces:
        parser, more = parser.mark(piece.marker) if isinstance(piece, Mark) else parser.read(piece)
        events += more
    return joined((*events, *parser.finish()))


def joined(events):
    whole = []
    for event in events:
        match whole[-1:], event:
            case [TextDelta(before)], TextDelta(text):
                whole[-1] = TextDelta(before + text)
            case [ReasoningDelta(before)], ReasoningDelta(text):
                whole[-1] = ReasoningDelta(before + text)
            case [ToolArgumentsDelta(index, before)], ToolArgumentsDelta(same, text):
                assert index == same
                whole[-1] = ToolArgumentsDelta(index, before + text)
            case _:
                whole.append(event)
    return tuple(whole)


def chunks(text, size):
    return [text[start : start + size] for start in range(0, len(text), size)]


def chunked_pieces(pieces, size):
    """Cut what is not a marker token into chunks."""
    for piece in pieces:
        yield from [piece] if isinstance(piece, Mark) else chunks(piece, size)
