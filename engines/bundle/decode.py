"""JSON values to frozen dataclasses, with the path of whatever does not fit."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Mapping
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


class MisfitError(ValueError):
    """A JSON value does not have the shape its dataclass asks for; `field` is its dotted path."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def decode(kind: type[T], value: object, field: str = "") -> T:
    """Build the dataclass `kind` from a JSON object.

    Fields may be scalars, nested dataclasses, `tuple[X, ...]`, `dict[str, X]` or
    `X | None`. Unknown and absent fields are misfits, so that a newer format is
    never half understood.
    """
    entries = _mapping(value, field)
    hints = get_type_hints(kind)
    names = [each.name for each in dataclasses.fields(kind)]  # type: ignore[arg-type]  # a dataclass
    for name in entries:
        if name not in names:
            raise MisfitError(_join(field, name), "is not a known field")
    for name in names:
        if name not in entries:
            raise MisfitError(_join(field, name), "is missing")
    return kind(**{n: _value(hints[n], entries[n], _join(field, n)) for n in names})


def _value(hint: Any, value: object, field: str) -> object:
    origin = get_origin(hint)
    if origin in {Union, types.UnionType}:
        inner = next(each for each in get_args(hint) if each is not type(None))
        return None if value is None else _value(inner, value, field)
    if origin is tuple:
        return _items(get_args(hint)[0], value, field)
    if origin is dict:
        inner = get_args(hint)[1]
        entries = _mapping(value, field)
        return {key: _value(inner, each, _join(field, key)) for key, each in entries.items()}
    if dataclasses.is_dataclass(hint):
        return decode(hint, value, field)  # type: ignore[arg-type]  # is_dataclass narrows too little
    return _scalar(hint, value, field)


def _items(hint: Any, value: object, field: str) -> tuple[object, ...]:
    if not isinstance(value, list):
        raise MisfitError(field, f"must be a list, not {type(value).__name__}")
    return tuple(_value(hint, each, f"{field}[{index}]") for index, each in enumerate(value))


def _scalar(hint: type, value: object, field: str) -> object:
    if hint is float and type(value) is int:
        return _float(value, field)
    if type(value) is not hint:
        raise MisfitError(field, f"must be {hint.__name__}, not {type(value).__name__}")
    return value


def _float(value: int, field: str) -> float:
    try:
        return float(value)
    except OverflowError as large:
        raise MisfitError(field, "is too large") from large


def _mapping(value: object, field: str) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise MisfitError(field or "document", f"must be an object, not {type(value).__name__}")
    return value


def _join(field: str, name: str) -> str:
    return f"{field}.{name}" if field else name
