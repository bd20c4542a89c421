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

    def finish(self) -> tuple[SemanticEvent, ...]:
        """Return what was still open, as the literal text it then is."""


@dataclass(frozen=True, slots=True)
class PlainText:
    """The dialect of a model that writes nothing but text."""

    def read(self, text: str) -> tuple[PlainText, tuple[SemanticEvent, ...]]:
        """Pass the text on."""
        return self, (TextDelta(text),)

    def finish(self) -> tuple[SemanticEvent, ...]:
        """Hold nothing."""
        return ()


PLAIN_TEXT = PlainText()
