"""A client's JSON Schema, read within bounds and with the white space of its values bounded."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from math import lcm

from service.text.json_values import parts, read_object

Schema = dict[str, object]

OPTIONS = {
    "item_separator": ",",
    "key_separator": ":",
    "whitespace_flexible": True,
    "whitespace_pattern": r"[ \t\n\r]{0,32}",
    "lenient": False,
}

# The automaton of a multiple has a state for each remainder: this many take a quarter of a second.
_MAX_REMAINDERS = 20_000
_MAX_EXPONENT = 30


def read_schema(text: str) -> Schema:
    """Return a schema with the options under which it is compiled.

    Raises:
        ValueError: it is not JSON, no schema, accepts nothing, or is too deep or too hard.
    """
    if text.strip() == "true":
        return any_json()
    if text.strip() == "false":
        raise ValueError("accepts no value")
    if not text.strip():
        raise ValueError("must be JSON: it is empty")
    schema = read_object(text)
    if _remainders(schema) > _MAX_REMAINDERS:
        raise ValueError(f"multipleOf: a common multiple must not exceed {_MAX_REMAINDERS} steps")
    own = schema.get("x-guidance")
    return schema | {"x-guidance": (own if isinstance(own, dict) else {}) | OPTIONS}


def any_json() -> Schema:
    """Return the schema of any value."""
    return {"x-guidance": OPTIONS}


def _remainders(schema: Schema) -> int:
    """Return the least common multiple of all that values must be multiples of, in their steps."""
    divisors = [Decimal(str(number)) for number in _divisors(schema) if number > 0]
    if not divisors:
        return 0
    exponents = [int(number.as_tuple().exponent) for number in divisors]
    finest = min(0, *exponents)
    if finest < -_MAX_EXPONENT or max(number.adjusted() for number in divisors) > _MAX_EXPONENT:
        return _MAX_REMAINDERS + 1
    return lcm(*(int(number.scaleb(-finest)) for number in divisors))


def _divisors(value: object) -> Iterator[int | float]:
    waiting = [value]
    while waiting:
        found = waiting.pop()
        waiting.extend(parts(found))
        if isinstance(found, dict):
            divisor = found.get("multipleOf")
            if isinstance(divisor, int | float) and not isinstance(divisor, bool):
                yield divisor
