"""Any output, cut in any way: the same events, and plain text as it is."""

import json

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from service.errors import SemanticError
from service.generation.events import TextDelta
from service.text.dialect import Turn
from service.text.tools import ToolChoice
from tests.service.text.dialects.readings import (
    OFFERED,
    PARSERS,
    TOOLS,
    Mark,
    called,
    read,
    said,
)

SHARED = [
    *'{}[]",:;<>| \n',
    "<|",
    "</",
    "word",
    "to=",
    "é👩",
    '{"name":"weather","arguments":{}}',
    '{"name":"weather","parameters":',
    '{"a":"}',
    "functions.weather",
    "function",
    "analysis",
    "assistant",
    "\n```json\n",
    "```",
    "weather",
    "weather.call(a='b')",
]
dialects = pytest.mark.parametrize("dialect", PARSERS)
turns = st.sampled_from([OFFERED, Turn("<think>\n", TOOLS, ToolChoice.AUTO), Turn()])


def soups(dialect, markers=None):
    """Draw outputs made of a dialect's own parts, in any order."""
    own = PARSERS[dialect][1] if markers is None else markers
    return st.lists(st.sampled_from([*own, *own, *SHARED]), max_size=14)


def cuts(text):
    places = st.sets(st.integers(0, len(text)), max_size=len(text))
    return places.map(lambda drawn: pieces_between(text, sorted(drawn)))


def pieces_between(text, places):
    pairs = zip([0, *places], [*places, len(text)], strict=True)
    return [text[start:end] for start, end in pairs if start < end]


def outcome(parser, pieces):
    try:
        return read(parser, pieces)
    except SemanticError as error:
        return error.message


@dialects
@given(drawn=st.data())
def test_events_are_independent_of_cuts(dialect, drawn):
    text = "".join(drawn.draw(soups(dialect)))
    parser = PARSERS[dialect][0](drawn.draw(turns))

    assert outcome(parser, [text]) == outcome(parser, drawn.draw(cuts(text)))


@dialects
@settings(max_examples=40)
@given(drawn=st.data())
def test_a_marker_that_is_a_token_reads_like_its_letters(dialect, drawn):
    """Between whole parts, so that no letters before it could have begun another marker."""
    parts = drawn.draw(soups(dialect).map(lambda soup: [p for p in soup if p[:1] not in "<|["]))
    markers = PARSERS[dialect][1]
    if markers:
        parts.insert(drawn.draw(st.integers(0, len(parts))), drawn.draw(st.sampled_from(markers)))
    parser = PARSERS[dialect][0](OFFERED)
    tokens = [Mark(part) if part in markers else part for part in parts]

    assert outcome(parser, parts) == outcome(parser, tokens)


@dialects
@given(drawn=st.data())
def test_text_without_markers_is_itself(dialect, drawn):
    text = "".join(drawn.draw(soups(dialect, markers=["<think", "[TOOL_CALLS", "<tool_call"])))
    assume(not any(marker in text for marker in PARSERS[dialect][1]))
    if dialect == "llama3_json" and text.strip(" \n").startswith("{"):
        text = f"So: {text}"

    events = read(PARSERS[dialect][0](OFFERED), drawn.draw(cuts(text)))

    assert (said(text) if text else ()) == events


@pytest.mark.parametrize("dialect", ["hermes", "llama3_python", "deepseek_v3", "deepseek_v31"])
@settings(max_examples=40)
@given(drawn=st.data())
def test_syntax_of_calls_without_tools_is_text(dialect, drawn):
    markers = [m for m in PARSERS[dialect][1] if m not in ("<think>", "</think>")]
    text = "".join(drawn.draw(soups(dialect, markers)))

    events = read(PARSERS[dialect][0](Turn("", (), ToolChoice.NONE)), drawn.draw(cuts(text)))

    assert (said(text) if text else ()) == events


@dialects
@settings(max_examples=40)
@given(drawn=st.data())
def test_forks_do_not_share(dialect, drawn):
    """What one copy reads leaves the other where it was."""
    before, after, other = (
        drawn.draw(soups(dialect).map("".join).filter(bool), label) for label in "abc"
    )
    try:
        parser, _ = PARSERS[dialect][0](OFFERED).read(before)
    except SemanticError:
        return
    expected = outcome(parser, [after])
    outcome(parser, [other])

    assert expected == outcome(parser, [after])


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
objects = st.dictionaries(st.text(), values, max_size=4)
WRITTEN = {
    "hermes": "<tool_call>{}</tool_call>",
    "llama3_json": "{}",
    "llama3_python": "<|python_tag|>{}",
    "mistral": "[TOOL_CALLS][{}]",
}


@pytest.mark.parametrize("dialect", WRITTEN)
@given(
    arguments=objects, indent=st.none() | st.integers(0, 3), escaped=st.booleans(), drawn=st.data()
)
def test_arguments_are_passed_on_as_written(dialect, arguments, indent, escaped, drawn):
    """Any object, before or after the name, among other members."""
    members = {"name": "weather", "arguments": arguments, "other": drawn.draw(values)}
    order = drawn.draw(st.permutations(list(members)))
    written = [
        f"{json.dumps(k)}:{json.dumps(members[k], indent=indent, ensure_ascii=escaped)}"
        for k in order
    ]
    text = WRITTEN[dialect].replace("{}", "{" + " , ".join(written) + "}")
    expected = json.dumps(arguments, indent=indent, ensure_ascii=escaped)

    events = read(PARSERS[dialect][0](OFFERED), drawn.draw(cuts(text)))

    assert called(expected) == events


@given(drawn=st.data(), text=st.text())
def test_any_text_of_any_characters_is_itself_in_small_pieces(drawn, text):
    events = read(PARSERS["hermes"][0](OFFERED), list(text))

    assert text == "".join(event.text for event in events if isinstance(event, TextDelta))
