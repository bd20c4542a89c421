"""Checks of one field's value: each returns what is wrong with it, or None."""

from __future__ import annotations

import math
from collections.abc import Callable, Sized
from dataclasses import dataclass
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.struct_pb2 import Struct

from service.rpc.mirror import seconds_of
from service.text.conversation_rules import TOOL_NAME

Check = Callable[[Any], str | None]


@dataclass(frozen=True, slots=True)
class Each:
    """A check of a whole list or map, and one of each of its values."""

    whole: Check
    value: Check


LARGEST_FLOAT32 = 3.4028234663852886e38
_MAX_DURATION_SECONDS = 315_576_000_000


def anything(value: object) -> str | None:
    """Accept every value that the type admits."""
    del value
    return None


def finite(value: float) -> str | None:
    """Refuse NaN and what is infinite in float32, in which engines compute."""
    if math.isfinite(value) and abs(value) <= LARGEST_FLOAT32:
        return None
    return f"must be finite in float32, got {value}"


def finite_at_least(minimum: float) -> Check:
    """Refuse what is not finite or below `minimum`."""

    def check(value: float) -> str | None:
        return finite(value) or (
            None if value >= minimum else f"must be at least {minimum:g}, got {value}"
        )

    return check


def finite_above(minimum: float) -> Check:
    """Refuse what is not finite, or not above `minimum`."""

    def check(value: float) -> str | None:
        return finite(value) or (
            None if value > minimum else f"must be above {minimum:g}, got {value}"
        )

    return check


def fraction(value: float) -> str | None:
    """Refuse what is not within [0, 1]."""
    return None if 0.0 <= value <= 1.0 else f"must be between 0 and 1, got {value}"


def positive_fraction(value: float) -> str | None:
    """Refuse what is not within (0, 1]."""
    return None if 0.0 < value <= 1.0 else f"must be above 0 and at most 1, got {value}"


def between(minimum: int, maximum: int) -> Check:
    """Refuse integers outside `minimum` to `maximum`."""

    def check(value: int) -> str | None:
        if minimum <= value <= maximum:
            return None
        return f"must be {minimum} to {maximum}, got {value}"

    return check


def at_least(minimum: int) -> Check:
    """Refuse integers below `minimum`."""

    def check(value: int) -> str | None:
        return None if value >= minimum else f"must be at least {minimum}, got {value}"

    return check


def known(values: frozenset[int]) -> Check:
    """Refuse enum values that this server does not know."""

    def check(value: int) -> str | None:
        return None if value in values else f"{value} is no value of this enum"

    return check


def at_most_bytes(maximum: int) -> Check:
    """Refuse texts whose UTF-8 form is longer than `maximum`."""

    def check(value: str) -> str | None:
        size = len(value.encode())
        return None if size <= maximum else f"must have at most {maximum} bytes, got {size}"

    return check


def nonempty_at_most_bytes(maximum: int) -> Check:
    """Refuse empty texts, and those whose UTF-8 form is longer than `maximum`."""
    bounded = at_most_bytes(maximum)

    def check(value: str) -> str | None:
        return bounded(value) if value else "must not be empty"

    return check


def nonempty(value: Sized) -> str | None:
    """Refuse empty texts and lists."""
    return None if len(value) else "must not be empty"


def at_most_items(maximum: int) -> Check:
    """Refuse lists of more than `maximum` items."""

    def check(value: Sized) -> str | None:
        count = len(value)
        return None if count <= maximum else f"must have at most {maximum} items, got {count}"

    return check


def turns_of_at_most(maximum: int, calls: int) -> Check:
    """Refuse more than `maximum` turns of a conversation, or `calls` in all of them together."""
    bounded = at_most_items(maximum)

    def check(value: Any) -> str | None:
        count = 0 if bounded(value) else sum(len(turn.tool_calls) for turn in value)
        told = f"must hold at most {calls} tool calls in all, got {count}"
        return bounded(value) or (None if count <= calls else told)

    return check


def tool_name(value: str) -> str | None:
    """Refuse what is no name of a tool."""
    return None if TOOL_NAME.fullmatch(value) else "must be 1 to 64 letters, digits, _ or -"


def json_values_of_at_most(maximum: int) -> Check:
    """Refuse Structs of more than `maximum` bytes, and those that JSON cannot spell."""

    def check(value: Struct) -> str | None:
        size = value.ByteSize()
        if size > maximum:
            return f"must have at most {maximum} bytes, got {size}"
        return None if _is_json(value) else "must hold finite numbers only, and no empty value"

    return check


def _is_json(value: Any) -> bool:
    """Whether every number is finite and every value is set; gRPC's decoder bounds the depth."""
    if isinstance(value, Struct):
        return all(map(_is_json, value.fields.values()))
    match value.WhichOneof("kind"):
        case None:
            return False
        case "number_value":
            return math.isfinite(value.number_value)
        case "struct_value":
            return _is_json(value.struct_value)
        case "list_value":
            return all(map(_is_json, value.list_value.values))
        case _:
            return True


def lasting_at_least(minimum: float) -> Check:
    """Refuse durations that are malformed or shorter than `minimum` seconds."""

    def check(value: Duration) -> str | None:
        return _malformed(value) or (
            None if seconds_of(value) >= minimum else f"must be at least {minimum:g} s"
        )

    return check


def lasting(value: Duration) -> str | None:
    """Refuse durations that are malformed, negative or zero."""
    return _malformed(value) or (None if seconds_of(value) > 0 else "must be above zero")


def _malformed(value: Duration) -> str | None:
    opposed = value.seconds * value.nanos < 0
    if opposed or abs(value.nanos) >= 10**9 or abs(value.seconds) > _MAX_DURATION_SECONDS:
        return "is not a valid google.protobuf.Duration"
    return None
