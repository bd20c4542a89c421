"""From text to events: where the dialects of reasoning and tool calls have their place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from service.generation.events import SemanticEvent, TextDelta


class TextParser(Protocol):
    """Reads the text of one output; an immutable value, so that keeping one is a fork."""

    def read(self, text: str) -> tuple[TextParser, tuple[SemanticEvent, ...]]:
        """Return the parser after `text`, and the events that it settled.

        Raises:
            SemanticError: the text breaks the dialect.
        """

    def mark(self, marker: str) -> tuple[TextParser, tuple[SemanticEvent, ...]]:
        """Return the same for a special token that is one of the dialect's markers.

        It is a marker for sure, where equal letters from ordinary tokens may be text.

        Raises:
            SemanticError: the marker breaks the dialect.
        """

    def finish(self) -> tuple[SemanticEvent, ...]:
        """Return what was still open, as the literal text it then is."""

    @property
    def is_reasoning(self) -> bool:
        """Whether what comes next is part of the reasoning."""


@dataclass(frozen=True, slots=True)
class PlainText:
    """The dialect of a model that writes nothing but text."""

    def read(self, text: str) -> tuple[PlainText, tuple[SemanticEvent, ...]]:
        """Pass the text on."""
        return self, (TextDelta(text),)

    def mark(self, marker: str) -> tuple[PlainText, tuple[SemanticEvent, ...]]:
        """Drop the marker: there is nothing to structure."""
        del marker
        return self, ()

    @property
    def is_reasoning(self) -> bool:
        """Whether there is reasoning: never."""
        return False

    def finish(self) -> tuple[SemanticEvent, ...]:
        """Hold nothing."""
        return ()


PLAIN_TEXT = PlainText()
