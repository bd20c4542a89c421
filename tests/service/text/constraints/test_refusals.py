"""What is refused, by which field, how soon, and without harm to the process."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from service.text.constraints.compiler import GrammarCompiler
from service.text.constraints.limits import Limits
from service.text.language import Choice, Composite, JsonSchema, Lark, Regex
from tests.service.text.constraints.words import (
    BYTES,
    ENDS,
    FIELD,
    refusals,
    schema,
)

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize(
    ("language", "inside", "words"),
    [
        pytest.param(Regex("[a-z"), ".regex", "unclosed character class", id="B33-class"),
        pytest.param(Regex("(abc"), ".regex", "unclosed group", id="B33-group"),
        pytest.param(Regex("*abc"), ".regex", "repetition operator", id="B33-star"),
        pytest.param(Regex("(?=a)b"), ".regex", "look-around", id="B33-look-ahead"),
        pytest.param(Regex(r"(a)\1"), ".regex", "backreferences", id="B33-backreference"),
        pytest.param(Lark(""), ".lark", "start", id="B33-lark-empty"),
        pytest.param(Lark('x: "a"'), ".lark", "no start rule", id="B33-lark-no-start"),
        pytest.param(Lark('start: / "test"'), ".lark", "lexer error", id="B33-lark-slash"),
        pytest.param(
            Lark("start: x x\nx[lazy, temperature=0.5]: /[a-z]*b/"),
            ".lark",
            "must not hold a temperature",
            id="lark-temperature",
        ),
        pytest.param(
            Lark('%llguidance {"allow_initial_skip": true}\nstart: "a"'),
            ".lark",
            "must hold no options",
            id="lark-options",
        ),
        pytest.param(JsonSchema("nope"), ".json_schema", "must be JSON", id="B33-not-json"),
        pytest.param(JsonSchema(""), ".json_schema", "must be JSON", id="B33-empty"),
        pytest.param(schema(type="objekt"), ".json_schema", "Invalid type", id="B33-type"),
        pytest.param(JsonSchema("false"), ".json_schema", "accepts no value", id="B33-false"),
        pytest.param(
            schema(type="integer", minimum=5, maximum=3),
            ".json_schema",
            "greater than maximum",
            id="B33-min-max",
        ),
        pytest.param(
            JsonSchema('{"$ref": "http://127.0.0.1:1/x.json"}'),
            ".json_schema",
            "does not fetch",
            id="B33-remote-ref",
        ),
        pytest.param(schema(uniqueItems=True), ".json_schema", "uniqueItems", id="unsupported"),
        pytest.param(
            JsonSchema('{"x-guidance": {"coerce_one_of": true}, "oneOf": [{"type": "null"}, {}]}'),
            ".json_schema",
            "oneOf",
            id="approximated-with-a-warning",
        ),
        pytest.param(
            schema(oneOf=[{"type": "null"}, {}]),
            ".json_schema",
            "oneOf constraints are not supported",
            id="overlapping",
        ),
        pytest.param(
            Lark('start: %json {"x-guidance": {"lenient": true}, "uniqueItems": true}'),
            ".lark",
            "uniqueItems",
            id="left-out-with-a-warning",
        ),
        pytest.param(JsonSchema('{"minimum": NaN}'), ".json_schema", "not a number", id="NaN"),
        pytest.param(JsonSchema("[1]"), ".json_schema", "object", id="schema-is-a-list"),
        pytest.param(Lark("start: start"), ".lark", "accepts no text", id="nothing"),
        pytest.param(Lark("start: <|eos|>"), ".lark", "accepts no text", id="end-by-name"),
        pytest.param(Lark("start: <|nope|>"), ".lark", "unknown special token", id="no-token"),
        pytest.param(
            Lark('start: %json {"multipleO\\u0066": 3}'), ".lark", "multipleOf", id="no-limit"
        ),
        pytest.param(Choice(()), ".choice.texts", "must hold", id="no-choice"),
        pytest.param(Choice(("a", "")), ".choice.texts[1]", "empty", id="empty-choice"),
        pytest.param(Choice(("\ud800",)), ".choice.texts[0]", "surrogate", id="lone-surrogate"),
        pytest.param(Regex("a\udfff"), ".regex", "surrogate", id="lone-surrogate-in-regex"),
        pytest.param(
            Composite("start: @x", (("x", Regex("(")),)), "", "unclosed", id="part-of-composite"
        ),
    ],
)
def test_refusal_names_the_field_and_gives_the_compilers_words(language, inside, words):
    """B33: before any token, in one short line."""
    (violation,) = refusals(language)

    assert violation.field == FIELD + inside
    assert words in violation.description
    assert len(violation.description) <= 300
    assert "\n" not in violation.description
    assert "start:" not in violation.description
    assert "coerce_one_of" not in violation.description


def test_refusal_shows_nothing_of_the_inside_of_the_compiler():
    symbols = " ".join(f"(x y){{{count}}}" for count in range(1, 9000))

    patient = GrammarCompiler(BYTES, ENDS, Limits(compile_seconds=60.0))
    (violation,) = refusals(Lark(f'start: {symbols}\nx: "a"\ny: "b"'), patient)

    assert f"{FIELD}.lark" == violation.field
    assert "is too large for the compiler" == violation.description


def test_every_refused_choice_is_named():
    fields = [violation.field for violation in refusals(Choice(("", "a", "")))]

    assert fields == [f"{FIELD}.choice.texts[0]", f"{FIELD}.choice.texts[2]"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(json.dumps({"enum": list(range(100_000))}), id="B35-enum"),
        pytest.param('{"items":' * 2000 + "{}" + "}" * 2000, id="B35-depth"),
        pytest.param('{"items":' * 65 + "{}" + "}" * 65, id="depth-just-beyond"),
        pytest.param('{"multipleOf": 999983}', id="a-state-for-each-remainder"),
        pytest.param('{"multipleOf": 1e300}', id="far-beyond-any-remainder"),
        pytest.param('{"allOf": [{"multipleOf": 997}, {"multipleOf": 991}]}', id="common-multiple"),
    ],
)
def test_what_would_be_slow_is_refused_at_once(text):
    """B35: in less than a second."""
    begun = time.monotonic()

    (violation,) = refusals(JsonSchema(text))

    assert violation.field == f"{FIELD}.json_schema"
    assert time.monotonic() - begun < 1


@pytest.mark.parametrize(
    "language",
    [
        Regex("x" * 200_000),
        Lark('start: "a"\n' * 20_000),
        Choice(tuple(map(str, range(10_001)))),
        Choice(("x" * 70_000, "y" * 70_000)),
    ],
    ids=["regex", "lark", "choices", "choice-bytes"],
)
def test_sources_are_bounded(language):
    (violation,) = refusals(language)

    assert "at most" in violation.description or "10000" in violation.description


# Compilers that recurse once for each of these rules need more than a usual stack.
DEEP = {
    "rules": 'Lark("start: r0\\n" + "".join(f"r{i}: r{i+1}\\n" for i in range(6000))'
    ' + "r6000: \\"a\\"")',
    "terminals": 'Lark("start: A0\\n" + "".join(f"A{i}: A{i+1}\\n" for i in range(6000))'
    ' + "A6000: \\"a\\"")',
    "references": 'JsonSchema(json.dumps({"$ref": "#/$defs/a0", "$defs": {f"a{i}": {"$ref": '
    'f"#/$defs/a{i+1}"} for i in range(3000)} | {"a3000": {"type": "integer"}}}))',
    "parentheses": 'Lark("start: " + "(" * 60000 + "x")',
    "groups": 'Regex("(" * 60000 + ")" * 60000)',
    "schema": "JsonSchema('{\"items\":' * 2000 + '{}' + '}' * 2000)",
}


@pytest.mark.parametrize("source", DEEP.values(), ids=DEEP)
def test_deep_sources_do_not_end_the_process(source):
    """B35, in a process of its own, because a stack that overruns ends it."""
    program = (
        "import json\n"
        "from service.text.language import *\n"
        "from service.errors import InvalidRequest\n"
        "from tests.service.text.constraints.words import COMPILERS, ENDS, FIELD\n"
        f"language = {source}\n"
        "try:\n"
        "    state = COMPILERS['bytes'].compile(language, ENDS, FIELD)\n"
        "    state.after(97).after(49).mask()\n"
        "except InvalidRequest as refused:\n"
        "    assert 'constraint' in refused.violations[0].field\n"
    )

    result = subprocess.run(  # noqa: S603 - our own interpreter and source
        [sys.executable, "-c", program], cwd=ROOT, check=False, timeout=60, capture_output=True
    )

    assert (result.returncode, result.stderr) == (0, b"")
