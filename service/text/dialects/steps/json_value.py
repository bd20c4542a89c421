"""One JSON value, read in pieces: where it ends, and whether it is well-formed so far."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

Stack = tuple["Stack", str] | None
"""The open brackets, innermost first: it shares all but its top with its copies."""

_VALUE, _FIRST_ITEM, _FIRST_KEY, _KEY, _COLON = "value", "first item", "first key", "key", "colon"
_AFTER: Final = {None: "end", "{": "after member", "[": "after item"}
"""Where a value leads that stands in no bracket, in an object or in an array."""
_OPEN: Final = {"{": _FIRST_KEY, "[": _FIRST_ITEM}
_BROKEN, _POP, _ENDED = "broken", "pop", "ended"
_STRING_RUN = re.compile(r'[^"\\\x00-\x1f]*')
_STRINGS = ("key string", "value string")

Edges = dict[str, dict[str, str]]


def _each(characters: Iterable[str], place: str) -> dict[str, str]:
    return dict.fromkeys(characters, place)


def _string(name: str, then: str) -> Edges:
    """Return the places inside a string, whose plain characters `_STRING_RUN` passes over."""
    hexadecimal = "0123456789abcdefABCDEF"
    return {
        name: {'"': then, "\\": f"{name} escape"},
        f"{name} escape": {**_each('"\\/bfnrt', name), "u": f"{name} u1"},
        f"{name} u1": _each(hexadecimal, f"{name} u2"),
        f"{name} u2": _each(hexadecimal, f"{name} u3"),
        f"{name} u3": _each(hexadecimal, f"{name} u4"),
        f"{name} u4": _each(hexadecimal, name),
    }


def _words(*words: str) -> Edges:
    """Return the places inside the words: what has been read of them."""
    return {
        word[:length]: {word[length]: word[: length + 1] if length + 1 < len(word) else _ENDED}
        for word in words
        for length in range(1, len(word))
    }


def _edges() -> Edges:
    digits = "0123456789"
    number = {"-": "minus", "0": "zero", **_each("123456789", "integer")}
    value = {"{": "{", "[": "[", '"': "value string", "t": "t", "f": "f", "n": "n", **number}
    power = _each("eE", "power")
    separated = {
        _VALUE: value,
        _FIRST_ITEM: {**value, "]": _POP},
        _FIRST_KEY: {'"': "key string", "}": _POP},
        _KEY: {'"': "key string"},
        _COLON: {":": _VALUE},
        _AFTER["{"]: {",": _KEY, "}": _POP},
        _AFTER["["]: {",": _VALUE, "]": _POP},
    }
    spaced = {place: {**_each(" \t\r\n", place), **edges} for place, edges in separated.items()}
    return {
        **spaced,
        "minus": {"0": "zero", **_each("123456789", "integer")},
        "zero": {".": "point", **power},
        "integer": {**_each(digits, "integer"), ".": "point", **power},
        "point": _each(digits, "fraction"),
        "fraction": {**_each(digits, "fraction"), **power},
        "power": {**_each("+-", "power sign"), **_each(digits, "power digits")},
        "power sign": _each(digits, "power digits"),
        "power digits": _each(digits, "power digits"),
        **_string("key string", _COLON),
        **_string("value string", _ENDED),
        **_words("true", "false", "null"),
    }


_EDGES: Final[Mapping[str, Mapping[str, str]]] = _edges()
_MAY_END: Final = frozenset({"zero", "integer", "fraction", "power digits"})
"""Only what follows a number says that it has ended."""


@dataclass(frozen=True, slots=True)
class JsonValue:
    """A place in a JSON value: in what it stands, and what may follow.

    Source: RFC 8259; the grammar is a table of places and characters.
    """

    place: str = _VALUE
    stack: Stack = None

    @property
    def is_complete(self) -> bool:
        """Whether the value has ended."""
        return self.place == _AFTER[None]

    @property
    def is_broken(self) -> bool:
        """Whether no value begins like this."""
        return self.place == _BROKEN

    def read(self, text: str, start: int = 0) -> tuple[JsonValue, int]:
        """Return the place after `text[start:]`, and where the value ended or broke, or the text.

        White space before the value is part of it. Each character costs constant time.
        """
        place, stack, at = self.place, self.stack, start
        while at < len(text) and place not in (_AFTER[None], _BROKEN):
            if place in _STRINGS and (run := _STRING_RUN.match(text, at)) and run.end() > at:
                at = run.end()
                continue
            following = _EDGES[place].get(text[at])
            if following is None and place in _MAY_END:
                place = _AFTER[stack[1] if stack else None]
                continue
            at += following is not None
            place, stack = _step(following or _BROKEN, stack)
        return JsonValue(place, stack), at


def _step(place: str, stack: Stack) -> tuple[str, Stack]:
    """Open or close a bracket where an edge says so."""
    if place in _OPEN:
        return _OPEN[place], (stack, place)
    if place == _POP and stack is not None:
        stack, place = stack[0], _ENDED
    if place == _ENDED:
        place = _AFTER[stack[1] if stack else None]
    return place, stack


AN_OBJECT = JsonValue(_FIRST_KEY, (None, "{"))
"""Behind the brace that opens an object."""
A_STRING = JsonValue("value string")
"""Behind the quote that opens a string."""
