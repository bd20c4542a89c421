"""What an output can be constrained to, as a request states it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AnyJson:
    """One complete JSON value."""


@dataclass(frozen=True, slots=True)
class JsonSchema:
    """One JSON value that a schema accepts; `schema` is its JSON text."""

    schema: str


@dataclass(frozen=True, slots=True)
class Regex:
    """A regular expression for the whole output."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Lark:
    """A grammar in the Lark dialect of llguidance."""

    grammar: str


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several texts."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Composite:
    """A Lark grammar whose rules may use other languages, each as `@name`."""

    lark: str
    parts: tuple[tuple[str, Language], ...]


Language = AnyJson | JsonSchema | Regex | Lark | Choice | Composite
