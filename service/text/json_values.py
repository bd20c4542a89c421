"""JSON that a client wrote, read within bounds."""

from __future__ import annotations

import json
from typing import NoReturn

MAX_DEPTH = 64


def read_object(text: str) -> dict[str, object]:
    """Read one JSON object; an empty text is the empty object.

    Raises:
        ValueError: it is not JSON, not an object, or nested deeper than `MAX_DEPTH`.
    """
    if not text:
        return {}
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError as deep:
        raise ValueError(_too_deep()) from deep
    except ValueError as broken:
        raise ValueError(f"must be JSON: {broken}") from broken
    if not isinstance(value, dict):
        raise ValueError("must be a JSON object")  # noqa: TRY004 - of the text, as all the others
    if is_too_deep(value):
        raise ValueError(_too_deep())
    return value


def is_too_deep(value: object) -> bool:
    """Whether a value nests deeper than `MAX_DEPTH`; what holds no other value has depth 0."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [part for whole in level for part in parts(whole)]
    return bool(level)


def parts(value: object) -> tuple[object, ...]:
    """Return the values that a value holds, one level down."""
    match value:
        case dict():
            return tuple(value.values())
        case list() | tuple():
            return tuple(value)
        case _:
            return ()


def _too_deep() -> str:
    return f"must not nest deeper than {MAX_DEPTH}"


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")
