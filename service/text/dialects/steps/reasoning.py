"""Turns that may begin with reasoning between two tags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from service.generation.events import ReasoningDelta, TextDelta
from service.text.dialect import Turn
from service.text.dialects.steps.literals import OneOf
from service.text.dialects.steps.parser import TEXT, Script, ScriptParser
from service.text.dialects.steps.progress import WHITE_SPACE, Step
from service.text.dialects.steps.prose import Prose
from service.text.tools import ToolChoice


@dataclass(frozen=True, slots=True)
class Calls:
    """The syntax of calls: a marker in the text leads to the first of these steps."""

    marker: str
    steps: Mapping[str, Step] = field(default_factory=dict)

    def markers(self, tools: frozenset[str]) -> dict[str, str]:
        """Return the marker and where it leads; none where there is nothing to call."""
        return {self.marker: next(iter(self.steps))} if tools and self.steps else {}


def tagged(turn: Turn, tags: tuple[str, str], calls: Calls) -> ScriptParser:
    """Return the parser of a turn with reasoning between the tags, then text with calls.

    The reasoning is the turn's beginning: a prompt that ends with the opening tag is in the midst
    of it, and after other text the tag is text, such as an answer that speaks of it.
    """
    tools = offered(turn)
    opening, closing = tags
    steps: dict[str, Step] = {
        "turn": OneOf({opening: "reasoning"}),
        "reasoning": Prose(ReasoningDelta, {closing: TEXT}),
        **calls.steps,
    }
    script = Script(Prose(TextDelta, calls.markers(tools)), steps, tools)
    return script.parser("reasoning" if ends_with(turn.prompt, opening) else "turn")


def offered(turn: Turn) -> frozenset[str]:
    """Return the names that calls may have; without any, the syntax of calls is text."""
    if turn.choice is ToolChoice.NONE:
        return frozenset()
    return frozenset(tool.name for tool in turn.tools)


def ends_with(prompt: str, marker: str) -> bool:
    """Return whether nothing but white space follows a marker at the end of a prompt."""
    return prompt.rstrip(WHITE_SPACE).endswith(marker)
