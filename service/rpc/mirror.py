"""Copies a portable dataclass into the message whose fields bear the same names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, TypeVar

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from service.rpc.enums import WIRE_VALUES

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_NANOSECONDS = 1_000_000_000

M = TypeVar("M", bound=Message)


def duration(seconds: float) -> Duration:
    """Return seconds as a Duration, to the nearest nanosecond."""
    whole, nanos = divmod(round(seconds * _NANOSECONDS), _NANOSECONDS)
    return Duration(seconds=whole, nanos=nanos)


def seconds_of(value: Duration) -> float:
    """Return a Duration as seconds."""
    return value.seconds + value.nanos / _NANOSECONDS


def mirror(value: DataclassInstance, message: M) -> M:
    """Set every field of `value` on `message` and return it; None stays absent."""
    for field in fields(value):
        copy_field(message, field.name, getattr(value, field.name))
    return message


def copy_field(message: Message, name: str, value: object) -> None:
    """Set one field in the form that its descriptor asks for."""
    if value is None:
        return
    if is_dataclass(value) and not isinstance(value, type):
        target = getattr(message, name)
        target.SetInParent()
        mirror(value, target)
    elif isinstance(value, Mapping):
        getattr(message, name).update(value)
    elif isinstance(value, Enum):
        setattr(message, name, WIRE_VALUES[value])
    elif isinstance(value, tuple | frozenset):
        getattr(message, name).extend(sorted(value) if isinstance(value, frozenset) else value)
    elif isinstance(value, int | float) and _is_duration(message, name):
        getattr(message, name).CopyFrom(duration(value))
    else:
        setattr(message, name, value)


def _is_duration(message: Message, name: str) -> bool:
    kind = message.DESCRIPTOR.fields_by_name[name].message_type
    return kind is not None and kind.full_name == Duration.DESCRIPTOR.full_name
