"""One setting's value: from text or TOML to its type, or a sentence that says why not."""

from __future__ import annotations

import math
from enum import Enum
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

_BOOLEANS = {"true": True, "false": False}
ABSENT = "none"
"""How a source spells the absence of an optional value."""


class MalformedValueError(ValueError):
    """A value is not what its setting takes; the message says what it takes."""


def read_value(given: object, kind: Any) -> object:
    """Return `given` as a value of `kind`; text may spell any kind.

    Raises:
        MalformedValueError: it spells no such value; the message says what was expected.
    """
    if isinstance(kind, UnionType):
        (inner,) = (each for each in get_args(kind) if each is not NoneType)
        return None if given == ABSENT else read_value(given, inner)
    if get_origin(kind) is tuple:
        return _read_list(given)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _read_choice(given, kind)
    return _READERS[kind](given)


def require_bounds(value: object, least: float | None, most: float | None) -> None:
    """Refuse a number outside its bounds; both ends are inside.

    Raises:
        MalformedValueError: the message names the bound.
    """
    if not isinstance(value, int | float):
        return
    if least is not None and value < least:
        raise MalformedValueError(f"must be at least {least}, got {value}")
    if most is not None and value > most:
        raise MalformedValueError(f"must be at most {most}, got {value}")


def _read_list(given: object) -> tuple[str, ...]:
    """Read a list of texts; in text, commas part them."""
    parts = given.split(",") if isinstance(given, str) else given
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise MalformedValueError(f"must be a list of texts, got {given!r}")
    named = tuple(part.strip() for part in parts if part.strip())
    # An empty part of a text is a stray comma; one of a list was meant to say something.
    if isinstance(given, list) and len(named) < len(parts):
        raise MalformedValueError(f"must be texts that are not empty, got {given!r}")
    return named


def _read_choice(given: object, kind: type[Enum]) -> Enum:
    for choice in kind:
        if given == choice.value:
            return choice
    choices = ", ".join(str(choice.value) for choice in kind)
    raise MalformedValueError(f"must be one of {choices}, got {given!r}")


def _read_text(given: object) -> str:
    if not isinstance(given, str):
        raise MalformedValueError(f"must be a text, got {given!r}")
    return given


def _read_bool(given: object) -> bool:
    value = _BOOLEANS.get(given) if isinstance(given, str) else given
    if not isinstance(value, bool):
        raise MalformedValueError(f"must be true or false, got {given!r}")
    return value


def _read_int(given: object) -> int:
    value = _number(int, given) if isinstance(given, str) else given
    if not isinstance(value, int) or isinstance(value, bool):
        raise MalformedValueError(f"must be an integer, got {given!r}")
    return value


def _read_float(given: object) -> float:
    value = _number(float, given) if isinstance(given, str) else given
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise MalformedValueError(f"must be a finite number, got {given!r}")
    return float(value)


def _number(kind: type[int | float], text: str) -> int | float | None:
    try:
        return kind(text)
    except ValueError:
        return None


_READERS = {str: _read_text, bool: _read_bool, int: _read_int, float: _read_float}
