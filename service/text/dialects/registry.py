"""All dialects by name: each parser with its grammar."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from service.errors import FieldViolation, InvalidRequest
from service.text.dialect import PLAIN_DIALECT, Dialect, Spell, Turn
from service.text.dialects import (
    deepseek,
    harmony,
    hermes,
    llama3_json,
    llama3_python,
    mistral,
    think,
)
from service.text.dialects.calls_only import CallsOnly
from service.text.dialects.grammars import syntaxes
from service.text.dialects.grammars.harmony import harmony_language
from service.text.dialects.grammars.tagged import Tagged, tagged_language
from service.text.language import Language
from service.text.parser import TextParser
from service.text.tools import NamedTool, ToolChoice

ReadTurn = Callable[[Turn], TextParser]
MatchTurn = Callable[[Turn, Language | None, Spell], Language | None]


@dataclass(frozen=True, slots=True)
class KnownDialect:
    """A dialect of a parser and a grammar, which agree on every turn."""

    name: str
    markers: tuple[str, ...]
    read: ReadTurn
    match: MatchTurn
    writes_calls: bool = True

    def parser(self, turn: Turn) -> TextParser:
        """Return what reads the turn."""
        parser = self.read(turn)
        calls_only = turn.choice is ToolChoice.REQUIRED or isinstance(turn.choice, NamedTool)
        return CallsOnly(parser) if turn.tools and calls_only else parser

    def grammar(self, turn: Turn, answer: Language | None, spell: Spell) -> Language | None:
        """Return what the whole turn must match, None where nothing is asked of it.

        Raises:
            ValueError: the schema of a tool's arguments is malformed.
        """
        return self.match(turn, answer, spell)


def _tagged(name: str, markers: tuple[str, ...], read: ReadTurn, syntax: Tagged) -> KnownDialect:
    writes_calls = syntax.section is not None
    return KnownDialect(name, markers, read, partial(tagged_language, syntax), writes_calls)


_ALL: tuple[Dialect, ...] = (
    PLAIN_DIALECT,
    _tagged("think", think.MARKERS, think.think_parser, syntaxes.THINK),
    _tagged("hermes", hermes.MARKERS, hermes.hermes_parser, syntaxes.HERMES),
    _tagged(
        "llama3_python",
        llama3_python.MARKERS,
        llama3_python.llama3_python_parser,
        syntaxes.LLAMA3_PYTHON,
    ),
    _tagged(
        "llama3_json", llama3_json.MARKERS, llama3_json.llama3_json_parser, syntaxes.LLAMA3_JSON
    ),
    _tagged("mistral", mistral.MARKERS, mistral.mistral_parser, syntaxes.MISTRAL),
    _tagged("mistral_args", mistral.MARKERS, mistral.mistral_args_parser, syntaxes.MISTRAL_ARGS),
    _tagged("deepseek_v3", deepseek.MARKERS, deepseek.deepseek_v3_parser, syntaxes.DEEPSEEK_V3),
    _tagged("deepseek_v31", deepseek.MARKERS, deepseek.deepseek_v31_parser, syntaxes.DEEPSEEK_V31),
    KnownDialect("harmony", harmony.MARKERS, harmony.harmony_parser, harmony_language),
)

DIALECTS: Mapping[str, Dialect] = MappingProxyType({dialect.name: dialect for dialect in _ALL})


def dialect_named(name: str, field: str) -> Dialect:
    """Return the dialect of a name.

    Raises:
        InvalidRequest: there is none; it lists the names under `field`.
    """
    if name not in DIALECTS:
        known = f"there is no dialect {name!r}; there are {', '.join(DIALECTS)}"
        raise InvalidRequest(FieldViolation(field, known))
    return DIALECTS[name]
