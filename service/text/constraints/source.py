"""From a language to the text of its grammar, checked as far as that needs no compiler."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import assert_never

import llguidance

from service.errors import FieldViolation
from service.text.constraints.limits import Limits
from service.text.constraints.schema import any_json, read_schema
from service.text.language import AnyJson, Choice, Composite, JsonSchema, Language, Lark, Regex

Part = dict[str, object]

_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")

_TEMPERATURE = re.compile(
    r"^[ \t]*!?\??\w+(::\w+)?[ \t]*\[[^\]\n]*\btemperature[ \t]*=", re.MULTILINE
)

_OPTIONS = re.compile(r"^[ \t]*%llguidance\s*\{\s*[^\s}]", re.MULTILINE)

_OUTPUT = "output"

# Without this the compiler lets a forced text be spelled in one way only, and a mask then forbids
# tokens that may follow.
_ENTRY: Part = {
    "name": "",
    "lark_grammar": f'%llguidance {{"no_forcing": true}}\nstart: @{_OUTPUT}',
}


def source_of(language: Language) -> str:
    """Return the grammar of a language without violations, as the compiler takes it."""
    return json.dumps({"grammars": [_ENTRY, *_grammars(_OUTPUT, language)]})


def own_field(language: Language, field: str) -> str:
    """Return the field of a language, where `field` is that of the constraint it stands in."""
    match language:
        case JsonSchema():
            return f"{field}.json_schema"
        case Regex():
            return f"{field}.regex"
        case Lark():
            return f"{field}.lark"
        case Choice():
            return f"{field}.choice.texts"
        case _:
            return field


def violations(language: Language, field: str, limits: Limits) -> Iterator[FieldViolation]:
    """Yield what is wrong with a language before it is compiled."""
    own = own_field(language, field)
    match language:
        case AnyJson():
            return
        case JsonSchema(schema):
            yield from _refused(own, schema, limits, read_schema)
        case Regex(pattern):
            yield from _refused(own, pattern, limits)
        case Lark(grammar):
            yield from _refused(own, grammar, limits, _read_lark)
        case Choice(texts):
            yield from _refused_choice(own, texts, limits)
        case Composite(lark, parts):
            yield from _refused(own, lark, limits, _read_lark)
            for _, part in parts:
                yield from violations(part, field, limits)
        case _:
            assert_never(language)


def _refused(
    field: str, text: str, limits: Limits, read: Callable[[str], object] = str
) -> Iterator[FieldViolation]:
    size = _bytes(text)
    if size > limits.source_bytes:
        yield FieldViolation(field, _too_large(size, limits))
        return
    try:
        text.encode()
        read(text)
    except UnicodeEncodeError as lone:
        yield FieldViolation(field, f"character {lone.start} is a lone surrogate")
    except ValueError as refused:
        yield FieldViolation(field, str(refused))


def _refused_choice(field: str, texts: tuple[str, ...], limits: Limits) -> Iterator[FieldViolation]:
    size = sum(map(_bytes, texts))
    if not 0 < len(texts) <= limits.choices:
        rule = f"must hold 1 to {limits.choices} texts, got {len(texts)}"
        yield FieldViolation(field, rule)
    elif size > limits.source_bytes:
        yield FieldViolation(field, _too_large(size, limits))
    else:
        for index, text in enumerate(texts):
            if not text:
                yield FieldViolation(f"{field}[{index}]", "must not be empty")
            yield from _refused(f"{field}[{index}]", text, limits)


def _read_lark(grammar: str) -> None:
    """Refuse what the library would take and not heed, or not bound.

    That is the temperature of a rule, an option for the whole grammar, and the one keyword of an
    embedded schema whose automaton no limit bounds.

    Raises:
        ValueError: one of them occurs, the keyword possibly spelled with escapes.
    """
    if _TEMPERATURE.search(grammar):
        raise ValueError("must not hold a temperature; settings.temperature holds for all of it")
    if _OPTIONS.search(grammar):
        raise ValueError("must hold no options for %llguidance, which would have no effect")
    spelled = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), grammar)
    if "%json" in grammar and "multipleOf" in spelled:
        raise ValueError("must not hold multipleOf in %json")


def _bytes(text: str) -> int:
    return len(text.encode(errors="replace"))


def _too_large(size: int, limits: Limits) -> str:
    return f"has {size} bytes; at most {limits.source_bytes} are allowed"


def _grammars(name: str, language: Language) -> Iterator[Part]:
    match language:
        case AnyJson():
            yield {"name": name, "json_schema": any_json()}
        case JsonSchema(schema):
            yield {"name": name, "json_schema": read_schema(schema)}
        case Regex(pattern):
            yield {"name": name, "lark_grammar": _regex(pattern)}
        case Lark(grammar):
            yield {"name": name, "lark_grammar": grammar}
        case Choice(texts):
            # One terminal: rules would divide a text where one choice begins another.
            choices = " | ".join(map(json.dumps, texts))
            yield {"name": name, "lark_grammar": f"start: CHOICE\nCHOICE: {choices}"}
        case Composite(lark, parts):
            yield {"name": name, "lark_grammar": lark}
            for part_name, part in parts:
                yield from _grammars(part_name, part)
        case _:
            assert_never(language)


def _regex(pattern: str) -> str:
    quoted = json.loads(llguidance.LLMatcher.grammar_from_regex(pattern))
    return str(quoted["grammars"][0]["lark_grammar"])
