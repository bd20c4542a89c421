"""Constraints from the wire and back."""

from __future__ import annotations

from typing import assert_never

from outrider.v1 import settings_pb2
from service.text.language import AnyJson, Choice, Composite, JsonSchema, Language, Lark, Regex

_Wire = settings_pb2.Constraint


def constraint_of(constraint: settings_pb2.Constraint) -> Language:
    """Convert a valid constraint."""
    match constraint.WhichOneof("constraint"):
        case "json":
            return AnyJson()
        case "json_schema":
            return JsonSchema(constraint.json_schema)
        case "regex":
            return Regex(constraint.regex)
        case "lark":
            return Lark(constraint.lark)
        case "choice":
            return Choice(tuple(constraint.choice.texts))
        case None:
            raise AssertionError("validate refuses a constraint without a language")
        case other:
            assert_never(other)


def constraint_message(language: Language) -> settings_pb2.Constraint:
    """Return a constraint as it was asked for."""
    match language:
        case AnyJson():
            return _Wire(json=_Wire.AnyJson())
        case JsonSchema(schema):
            return _Wire(json_schema=schema)
        case Regex(pattern):
            return _Wire(regex=pattern)
        case Lark(grammar):
            return _Wire(lark=grammar)
        case Choice(texts):
            return _Wire(choice=_Wire.Choice(texts=texts))
        case Composite():
            raise AssertionError("no request states a composite language")
        case _:
            assert_never(language)
