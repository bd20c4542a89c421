"""Values as the wire has them, and errors that name those that do not fit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from reprlib import repr as shortened
from typing import TYPE_CHECKING, Any, TypeVar

from google.protobuf.descriptor import EnumDescriptor

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Given = TypeVar("Given")
Written = TypeVar("Written")
Part = TypeVar("Part", bound="DataclassInstance")


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Put a name before what a misfit is told by."""
    try:
        yield
    except (TypeError, ValueError) as misfit:
        kind = ValueError if isinstance(misfit, ValueError) else TypeError
        raise kind(f"{name}: {misfit}") from misfit


def option(name: str, value: object) -> str:
    """Return how an option is named in an error: as it was given."""
    return f"{name}={shortened(value)}"


def text(value: str) -> str:
    """Return a text.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(value, str):
        raise TypeError(f"must be a text, not {type(value).__name__}")
    return value


def json_text(value: Mapping[str, Any] | str) -> str:
    """Return a JSON text, given as it is or as what it spells."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def several(values: Iterable[Given]) -> Iterable[Given]:
    """Return values that are listed.

    Raises:
        TypeError: it is one value. A single text would read as its characters.
    """
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(f"must list its values, not be one {type(values).__name__}")
    return values


def each(
    name: str, values: Iterable[Given], write: Callable[[Given], Written]
) -> Iterator[Written]:
    """Yield listed values as they are written; errors name the one at fault."""
    with naming(name):
        listed = several(values)
    for index, value in enumerate(listed):
        with naming(f"{name}[{index}]"):
            written = write(value)
        yield written


def part(kind: type[Part], given: Part | Mapping[str, Any]) -> Part:
    """Return a part of a conversation, given as it is or by its keys.

    Raises:
        TypeError: it is neither, or has other keys.
    """
    if isinstance(given, kind):
        return given
    if not isinstance(given, Mapping):
        wanted = f"must be a {kind.__name__} or a mapping"
        raise TypeError(f"{wanted}, not {type(given).__name__}")
    keys = [field.name for field in fields(kind)]
    foreign = sorted(map(str, given.keys() - set(keys)))
    if foreign:
        raise TypeError(f"has no {', '.join(foreign)}; its keys are {', '.join(keys)}")
    return kind(**given)


def value_of(enum: EnumDescriptor, name: str) -> int:
    """Return a value of an enum of the contract by its short name, such as `none`.

    Raises:
        ValueError: it has no such value.
    """
    prefix = enum.values[0].name.removesuffix("UNSPECIFIED")
    known = {value.name.removeprefix(prefix).lower(): value.number for value in enum.values[1:]}
    number = known.get(str(name).lower())
    if number is None:
        raise ValueError(f"must be one of {', '.join(known)}")
    return number
