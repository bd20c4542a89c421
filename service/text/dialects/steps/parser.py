"""Plays the steps of a dialect: what they find becomes events, what breaks them stays text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from service.errors import SemanticError
from service.generation.events import (
    ReasoningDelta,
    SemanticEvent,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallEnd,
    ToolCallStart,
)
from service.text.dialects.steps.progress import (
    NOTHING,
    Arguments,
    Broken,
    Complete,
    Finding,
    Named,
    Next,
    Pieces,
    Step,
)
from service.text.dialects.steps.prose import Prose

TEXT = "text"
"""The name of the step that reads visible text, in every script."""


@dataclass(frozen=True, slots=True)
class Script:
    """A dialect for one turn: its steps by name, and the tools that a call may name.

    `text` is the step of the visible text, and where the parser falls back to.
    """

    text: Prose
    steps: Mapping[str, Step]
    tools: frozenset[str] = frozenset()

    def step(self, name: str) -> Step:
        """Return a step at its beginning."""
        return self.text if name == TEXT else self.steps[name]

    def parser(self, first: str) -> ScriptParser:
        """Return the parser of a turn that begins with a step; no marker went before a text."""
        if first == TEXT:
            return ScriptParser(self, replace(self.text, is_fresh=False))
        step = self.step(first)
        return ScriptParser(self, step, held=None if isinstance(step, Prose) else Held())


@dataclass(frozen=True, slots=True)
class Held:
    """What a block has read while it may turn out to be text: its marker, and what follows it."""

    marker: str = ""
    rest: Pieces = NOTHING


@dataclass(frozen=True, slots=True)
class ScriptParser:
    """Reads one output by a script; an immutable value.

    A block that breaks before it has named a tool is text: its marker as it stands, and what
    follows the marker as if it were read anew. From the first name on, its events are out.
    """

    script: Script
    step: Step
    calls: int = 0
    held: Held | None = None

    def read(self, text: str) -> tuple[ScriptParser, tuple[SemanticEvent, ...]]:
        """Return the parser after `text`, and the events that it settled.

        Raises:
            SemanticError: a call breaks after it has named its tool.
        """
        parser, events = self, list[SemanticEvent]()
        while text:
            parser, text, settled = _advance(parser, text)
            events += settled
        return parser, tuple(events)

    def mark(self, marker: str) -> tuple[ScriptParser, tuple[SemanticEvent, ...]]:
        """Read a marker that is one token: what came before it is no part of it.

        Where no marker is expected, it is text.

        Raises:
            SemanticError: as `read`.
        """
        parser, settled = self, list[SemanticEvent]()
        if isinstance(self.step, Prose):
            prose, found = self.step.settle()
            parser = replace(self, step=prose)
            settled += found
        parser, events = parser.read(marker)
        return parser, (*settled, *events)

    def finish(self) -> tuple[SemanticEvent, ...]:
        """Release what is held as the text that it is; a call that is not complete stays so."""
        if isinstance(self.step, Prose):
            return self.step.finish()
        text = self.held.marker + str(self.held.rest) if self.held else ""
        return (TextDelta(text),) if text else ()

    @property
    def is_reasoning(self) -> bool:
        """Whether what comes next is part of the reasoning."""
        return isinstance(self.step, Prose) and self.step.delta is ReasoningDelta


def _advance(parser: ScriptParser, text: str) -> tuple[ScriptParser, str, list[SemanticEvent]]:
    """Let the step read; return the parser, what is left of the text, and the events."""
    progress = parser.step.read(text)
    then = progress.then
    events = list[SemanticEvent]()
    for finding in progress.found:
        if isinstance(finding, Named) and finding.name not in parser.script.tools:
            then = Broken("no such tool is offered")
            break
        parser, event = _tell(parser, finding)
        events.append(event)
    if isinstance(then, Broken):
        parser, text, literal = _break(parser, then.reason, text)
        return parser, text, events + literal
    if isinstance(then, Next):
        return _follow(parser, then, text), then.rest, events
    if then is parser.step and parser.held is None:
        return parser, "", events
    return replace(parser, step=then, held=_grown(parser.held, text)), "", events


def _tell(parser: ScriptParser, finding: Finding) -> tuple[ScriptParser, SemanticEvent]:
    """Turn a finding into an event."""
    match finding:
        case Named(name, id):
            start = ToolCallStart(parser.calls, id or f"call_{parser.calls}", name)
            return replace(parser, held=None), start
        case Arguments(fragment):
            return parser, ToolArgumentsDelta(parser.calls, fragment)
        case Complete():
            return replace(parser, calls=parser.calls + 1), ToolCallEnd()
        case _:
            return parser, finding


def _follow(parser: ScriptParser, following: Next, text: str) -> ScriptParser:
    """Go to the next step; a block begins where a text's marker leads to another kind."""
    step = parser.script.step(following.step)
    if isinstance(step, Prose):
        held = None
    elif isinstance(parser.step, Prose):
        held = Held(following.marker)
    else:
        held = _grown(parser.held, text.removesuffix(following.rest))
    return replace(parser, step=step, held=held)


def _break(
    parser: ScriptParser, reason: str, text: str
) -> tuple[ScriptParser, str, list[SemanticEvent]]:
    """Take a block for text, and return what follows its marker to be read anew."""
    if parser.held is None:
        raise SemanticError("parse", f"tool call {parser.calls} is malformed: {reason}")
    marker: list[SemanticEvent] = [TextDelta(parser.held.marker)] if parser.held.marker else []
    prose = replace(parser.script.text, is_fresh=False)
    return replace(parser, step=prose, held=None), str(parser.held.rest) + text, marker


def _grown(held: Held | None, text: str) -> Held | None:
    return held and replace(held, rest=held.rest + text)
