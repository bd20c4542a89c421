"""A turn that may hold nothing but reasoning and calls."""

from __future__ import annotations

from dataclasses import dataclass

from service.generation.events import SemanticEvent, TextDelta
from service.text.parser import TextParser


@dataclass(frozen=True, slots=True)
class CallsOnly:
    """Reads as another parser does, but makes no text of a call that the output's end cut short.

    Its grammar admits no text, so what is left at the end is the beginning of a marker or of a call
    that has not named its tool.
    """

    parser: TextParser

    def read(self, text: str) -> tuple[CallsOnly, tuple[SemanticEvent, ...]]:
        """Read text.

        Raises:
            SemanticError: the text breaks the dialect.
        """
        parser, events = self.parser.read(text)
        return CallsOnly(parser), events

    def mark(self, marker: str) -> tuple[CallsOnly, tuple[SemanticEvent, ...]]:
        """Read a marker that is one token.

        Raises:
            SemanticError: the marker breaks the dialect.
        """
        parser, events = self.parser.mark(marker)
        return CallsOnly(parser), events

    def finish(self) -> tuple[SemanticEvent, ...]:
        """Release what is held, unless it would be text."""
        return tuple(event for event in self.parser.finish() if not isinstance(event, TextDelta))

    @property
    def is_reasoning(self) -> bool:
        """Whether what comes next is part of the reasoning."""
        return self.parser.is_reasoning
