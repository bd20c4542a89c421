import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.text.dialects.steps.json_value import JsonValue

PARTS = [*'{}[]",: \n\t\\-+.eEu019af', "true", "false", "null", '"a"', '{"', '":', "\\u00", "é"]
texts = st.lists(st.sampled_from(PARTS), max_size=12).map("".join)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


def read(pieces):
    """Return the value after the pieces, and how much of them it read."""
    value, length = JsonValue(), 0
    for piece in pieces:
        value, end = value.read(piece)
        length += end
        if value.is_complete or value.is_broken:
            break
    return value, length


def is_json(text):
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@given(text=texts)
def test_value_is_complete_where_json_is(text):
    """What follows a number ends it."""
    value, length = JsonValue().read(f"{text}\n")

    assert is_json(text) == (value.is_complete and text[length:].strip(" \n\t\r") == "")


@given(value=values, indent=st.none() | st.integers(0, 2), tail=st.sampled_from(["]", " {", ",1"]))
def test_value_ends_at_its_last_character(value, indent, tail):
    text = json.dumps(value, indent=indent)

    after, end = JsonValue().read(text + tail)

    assert after.is_complete
    assert len(text) == end


@given(text=texts, drawn=st.data())
def test_cuts_change_nothing(text, drawn):
    places = sorted(drawn.draw(st.sets(st.integers(0, len(text)))))
    pieces = [text[i:j] for i, j in zip([0, *places], [*places, len(text)], strict=True)]

    assert read([text]) == read(pieces)


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("[1,]", 3),
        ('{"a":1,}', 7),
        ('{"a" 1}', 5),
        ("[1}", 2),
        ("]", 0),
        ("tru e", 3),
        ('"\\x"', 2),
        ('"\\u12g4"', 5),
        ('"a\nb"', 2),
        ("--1", 1),
        ("1.e", 2),
        ("NaN", 0),
    ],
)
def test_value_breaks_at_the_first_wrong_character(text, length):
    value, end = JsonValue().read(text)

    assert value.is_broken
    assert length == end


def test_depth_costs_no_recursion():
    value, end = JsonValue().read("[" * 100_000 + "]" * 100_000)

    assert value.is_complete
    assert 200_000 == end
