"""What the syntax must say of itself in which a model writes reasoning and tool calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from service.text.language import Language
from service.text.parser import PLAIN_TEXT, TextParser
from service.text.tools import NamedTool, Tool, ToolChoice
from service.text.vocabulary import Vocabulary

Spell = Callable[[str], str]
"""Writes a marker in Lark: as its token, where the tokenizer has one, else as quoted text."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What the assistant's coming turn may hold.

    `prompt` is the rendered conversation, whose end may have opened the reasoning.
    """

    prompt: str = ""
    tools: tuple[Tool, ...] = ()
    choice: ToolChoice | NamedTool = ToolChoice.NONE
    parallel: bool = True


class Dialect(Protocol):
    """One syntax, by name; immutable and shared."""

    @property
    def name(self) -> str:
        """Return the name by which requests choose it."""

    @property
    def markers(self) -> tuple[str, ...]:
        """Return the texts that structure a turn; those that are special tokens are read by id."""

    @property
    def writes_calls(self) -> bool:
        """Whether the syntax has tool calls at all."""

    def parser(self, turn: Turn) -> TextParser:
        """Return what reads the turn. Without tools, the syntax of calls is text like any other."""

    def grammar(self, turn: Turn, answer: Language | None, spell: Spell) -> Language | None:
        """Return what the whole turn must match, None where nothing is asked of it.

        `answer` is what the request asks of the text after any reasoning; a request has either
        that or a choice of tools.
        """


@dataclass(frozen=True, slots=True)
class PlainDialect:
    """The dialect of a model that writes nothing but text."""

    name: str = "plain"
    markers: tuple[str, ...] = ()
    writes_calls: bool = False

    def parser(self, turn: Turn) -> TextParser:
        del turn
        return PLAIN_TEXT

    def grammar(self, turn: Turn, answer: Language | None, spell: Spell) -> Language | None:
        del turn, spell
        return answer


PLAIN_DIALECT = PlainDialect()


@dataclass(frozen=True, slots=True)
class Reading:
    """How one output is read, and what it must match."""

    parser: TextParser = PLAIN_TEXT
    markers: Mapping[int, str] = field(default_factory=dict)
    language: Language | None = None


def reading(dialect: Dialect, turn: Turn, answer: Language | None, words: Vocabulary) -> Reading:
    """Return how a turn in a dialect is read with this vocabulary."""
    ids = {words.special_id(marker): marker for marker in dialect.markers}
    by_token = {token: marker for token, marker in ids.items() if token is not None}
    tokens = {marker: token for token, marker in by_token.items()}

    def spell(marker: str) -> str:
        return f"<[{tokens[marker]}]>" if marker in tokens else quoted(marker)

    return Reading(dialect.parser(turn), by_token, dialect.grammar(turn, answer, spell))


def quoted(text: str) -> str:
    """Return a text as a Lark string."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t") + '"'
