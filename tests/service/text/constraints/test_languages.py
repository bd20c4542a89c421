"""What each language accepts."""

import json
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from service.errors import InvalidRequest
from service.text.language import AnyJson, Choice, JsonSchema, Lark, Regex
from tests.service.text.constraints.words import (
    FIELD,
    accepts,
    begin,
    permitted,
    schema,
    written,
)


@pytest.mark.parametrize(
    "language", [Regex("\x00"), schema(type="string", pattern="\x00"), Choice(("\x00",))]
)
def test_nul_is_a_character_like_others(language):
    """B33: a NUL is accepted."""
    state = begin(language)

    assert 0 in permitted(state) or ord('"') in permitted(state)


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
