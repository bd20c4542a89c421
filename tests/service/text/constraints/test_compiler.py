"""What compiles, what is refused and how soon, and what is kept."""

import json
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from service.errors import GrammarsBusy, InvalidRequest
from service.text.constraints.compiler import GrammarCompiler
from service.text.constraints.limits import Limits
from service.text.language import AnyJson, Choice, Composite, JsonSchema, Lark, Regex
from tests.service.text.constraints.words import (
    BYTES,
    COMPILERS,
    END,
    ENDS,
    FIELD,
    accepts,
    permitted,
    written,
)

ROOT = Path(__file__).parents[4]
COMPILER = COMPILERS["bytes"]


def begin(language, ends=ENDS, compiler=COMPILER):
    return compiler.compile(language, ends, FIELD)


def refusals(language, compiler=COMPILER):
    with pytest.raises(InvalidRequest) as refused:
        compiler.compile(language, ENDS, FIELD)
    return refused.value.violations


def schema(**keywords) -> JsonSchema:
    return JsonSchema(json.dumps(keywords))


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


@pytest.mark.parametrize(
    "language", [Regex("\x00"), schema(type="string", pattern="\x00"), Choice(("\x00",))]
)
def test_nul_is_a_character_like_others(language):
    """B33: a NUL is accepted."""
    state = begin(language)

    assert 0 in permitted(state) or ord('"') in permitted(state)


def test_every_refused_choice_is_named():
    fields = [violation.field for violation in refusals(Choice(("", "a", "")))]

    assert fields == [f"{FIELD}.choice.texts[0]", f"{FIELD}.choice.texts[2]"]


def test_long_strings_are_within_the_limits():
    """B35: maxLength=10000."""
    state = written(begin(schema(type="string", maxLength=10_000)), '"' + "a" * 9_999)

    assert permitted(state) >= {ord("a"), ord('"')}
    assert permitted(state.after(ord("a"))) == {ord('"')}


def test_pattern_and_length_hold_together():
    """B35: a pattern does not drop maxLength."""
    state = written(begin(schema(type="string", pattern="^[ -~]+$", maxLength=8)), '"12345678')

    assert permitted(state) == {ord('"')}
    assert not begin(schema(type="string", pattern="^[ -~]+$", maxLength=8)).after(34).permits(7)


def test_anchored_regex_with_line_ends_gives_exactly_its_texts():
    r"""B35: no text of `^` or `$`, and a line end as it is."""
    texts = ("A fruit\nA nice fruit", "A vegetable\nA nice vegetable")
    state = begin(Regex(f"^({'|'.join(texts)})$"))

    assert {text for text in texts if written(state, text).is_complete()} == set(texts)
    assert permitted(state) == {ord("A")}
    assert permitted(written(state, "A fruit")) == {ord("\n")}


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


def test_compilation_that_takes_too_long_is_refused_and_others_are_not_kept_waiting_for_ever():
    """B35: the wait is bounded, and so are the compilations that nobody waits for."""
    slow = schema(properties={f"p{index}": {"type": "integer"} for index in range(1500)})
    compiler = GrammarCompiler(BYTES, ENDS, Limits(compile_seconds=0.05, compilations=1))
    compiler.prepare()

    (violation,) = refusals(slow, compiler)
    with pytest.raises(GrammarsBusy):
        begin(Regex("a"), compiler=compiler)

    assert violation.description == "takes more than 0.05 s to compile"


def test_other_threads_run_while_a_grammar_compiles():
    """B35: the interpreter is not held, so an event loop goes on."""
    pauses, done = [], threading.Event()

    def watch():
        last = time.monotonic()
        while not done.wait(0.002):
            now = time.monotonic()
            pauses.append(now - last)
            last = now

    watcher = threading.Thread(target=watch)
    watcher.start()
    begin(schema(type="number", multipleOf=7919))
    done.set()
    watcher.join()

    assert max(pauses, default=0) < 0.25


def test_compiled_grammars_are_kept_and_the_oldest_given_up():
    compiler = GrammarCompiler(BYTES, ENDS, Limits(cached_grammars=2))
    kept = compiler._kept._grammars
    for pattern in ("a", "b", "a", "c"):
        begin(Regex(pattern), compiler=compiler)

    assert list(kept) == [Regex("a"), Regex("c")]


def test_kept_grammars_are_bounded_in_the_bytes_of_their_sources():
    compiler = GrammarCompiler(BYTES, ENDS, Limits(cached_bytes=2_500))
    for letter in "abc":
        begin(Regex(letter * 1_000), compiler=compiler)

    assert list(compiler._kept._grammars) == [Regex("b" * 1_000), Regex("c" * 1_000)]


def test_outputs_of_one_grammar_are_apart():
    first, second = begin(Regex("ab|cd")), begin(Regex("ab|cd"), frozenset({3}))

    assert permitted(written(first, "ab")) == {END}
    assert permitted(second) == {ord("a"), ord("c")}
    assert permitted(written(second, "cd")) == {3}


def test_schema_may_be_true_and_may_choose_among_options_but_not_widen_white_space():
    assert permitted(begin(JsonSchema(" true "))) == permitted(begin(AnyJson()))
    wide = {"whitespace_pattern": "[ ]*", "item_separator": " *,"}
    state = written(begin(schema(type="array", **{"x-guidance": wide})), "[" + " " * 32)

    assert ord(" ") not in permitted(state)


@given(st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=5))
@settings(max_examples=60, deadline=None)
@example(["a", "ab", "abc"])
@example(["\x00", '"', "\\", "/", "\u2028", "\n"])
def test_choice_accepts_each_of_its_texts_and_what_they_begin_with_only_if_it_is_one(texts):
    state = begin(Choice(tuple(texts)))
    beginnings = {text[:end] for text in texts for end in range(1, len(text))}

    assert all(accepts(state, text) for text in texts)
    assert not any(accepts(state, text) for text in beginnings - set(texts))


patterns = st.recursive(
    st.sampled_from(["a", "b", "[ab]", ".", "\\n", "[^a]", "€", "/", '"']),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"({two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{0,2}"])).map(
            lambda two: "({}){}".format(*two)
        ),
    ),
    max_leaves=6,
)


@given(patterns, st.lists(st.sampled_from(["a", "b", "\n", "€", "/", '"']), max_size=5))
@settings(max_examples=150, deadline=None)
def test_regex_accepts_what_it_matches(pattern, letters):
    text = "".join(letters)

    assert accepts(begin(Regex(pattern)), text) == bool(re.fullmatch(pattern, text))


noise = st.text(
    st.sampled_from('startxA:|()[]{}"/\\*+?~%,.@<>_-01\n ').filter(str), max_size=40
) | st.text(max_size=20)


def tried(language) -> set[str] | int:
    """Return how many tokens may begin an output, or the fields that are refused."""
    try:
        return len(permitted(begin(language)))
    except InvalidRequest as refused:
        return {violation.field for violation in refused.violations}


@given(noise)
@settings(max_examples=150, deadline=None)
def test_any_source_compiles_or_is_refused(text):
    assert tried(Regex(text)) in ({f"{FIELD}.regex"}, *range(1, 300))
    assert tried(Lark(text)) in ({f"{FIELD}.lark"}, *range(1, 300))
    assert tried(Lark(f"start: {text}")) in ({f"{FIELD}.lark"}, *range(1, 300))
    assert tried(JsonSchema(text)) in ({f"{FIELD}.json_schema"}, *range(1, 300))


KEYWORDS = (
    *("type", "items", "properties", "required", "enum", "const", "anyOf", "oneOf", "allOf"),
    *("$ref", "$defs", "minLength", "maximum", "multipleOf", "pattern", "not"),
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.sampled_from(["a", "#", "string", "^a"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(KEYWORDS),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@given(values)
@settings(max_examples=200, deadline=None)
def test_any_json_as_a_schema_compiles_or_is_refused(value):
    found = tried(JsonSchema(json.dumps(value)))

    assert found in ({f"{FIELD}.json_schema"}, *range(1, 300))
