"""Each dialect's outputs are the same events wherever they are cut."""

import json

import pytest

from service.errors import SemanticError
from service.generation.events import TextDelta, ToolArgumentsDelta, ToolCallEnd, ToolCallStart
from service.text.dialects.steps.progress import WHITE_SPACE
from tests.service.text.dialects.cases import CASES, MALFORMED
from tests.service.text.dialects.readings import (
    OFFERED,
    PARSERS,
    Case,
    Mark,
    called,
    chunked_pieces,
    chunks,
    read,
    said,
)

all_cases = pytest.mark.parametrize(
    "case", CASES, ids=[f"{case.dialect}: {case.id}" for case in CASES]
)
all_malformed = pytest.mark.parametrize(("dialect", "text"), MALFORMED)


@all_cases
def test_output_is_its_events(case):
    assert case.events == read(case.parser(), [case.text])


@all_cases
def test_output_is_its_events_at_every_cut(case):
    for cut in range(1, len(case.text)):
        assert case.events == read(case.parser(), [case.text[:cut], case.text[cut:]])


@all_cases
def test_output_is_its_events_in_chunks(case):
    for size in range(1, min(len(case.text), 60)):
        assert case.events == read(case.parser(), chunks(case.text, size))


@all_cases
def test_markers_that_are_tokens_are_read_alike(case):
    for size in (1, 2, 3, 5, 8, len(case.text)):
        assert case.events == read(case.parser(), chunked_pieces(case.pieces(), size))


@all_cases
def test_complete_calls_have_one_name_and_one_object(case):
    events = read(case.parser(), chunks(case.text, 3))
    for place, event in enumerate(events):
        if isinstance(event, ToolCallEnd):
            start, arguments = events[place - 2 : place]
            assert isinstance(start, ToolCallStart)
            assert isinstance(json.loads(arguments.json_fragment), dict)


@all_malformed
def test_call_that_breaks_after_its_name_fails_at_every_cut(dialect, text):
    case = Case("", dialect, text, ())
    for size in range(1, len(text) + 1):
        with pytest.raises(SemanticError, match="malformed"):
            read(case.parser(), chunks(text, size))
    with pytest.raises(SemanticError, match="malformed"):
        read(case.parser(), case.pieces())


@all_malformed
def test_call_that_breaks_had_shown_nothing_but_calls(dialect, text):
    """What was sent before the failure is of calls, as far as they were well-formed."""
    parser, events = PARSERS[dialect][0](OFFERED), []

    def read_on():
        nonlocal parser
        for character in text:
            parser, more = parser.read(character)
            events.extend(more)

    with pytest.raises(SemanticError):
        read_on()
    assert any(isinstance(event, ToolCallStart) for event in events)
    assert all(isinstance(e, ToolCallStart | ToolArgumentsDelta | ToolCallEnd) for e in events)


@pytest.mark.parametrize("dialect", PARSERS)
def test_text_is_not_held_beyond_what_may_become_a_marker(dialect):
    """A word reaches the client at once, where the dialect lets it be text."""
    parser, events = PARSERS[dialect][0](OFFERED), []
    for word in ("Plain", " words", " <b"):
        parser, more = parser.read(word)
        events += more

    assert [TextDelta("Plain"), TextDelta(" words")] == events[:2]
    assert "Plain words <b" == "".join(e.text for e in (*events, *parser.finish()))


@pytest.mark.parametrize("letters", ["<", "<tool_call", "\n<tool"])
def test_marker_that_is_a_token_does_not_complete_the_letters_before_it(letters):
    call = '{"name":"weather","arguments":{}}</tool_call>'
    events = read(PARSERS["hermes"][0](OFFERED), [f"a{letters}", Mark("<tool_call>"), call])

    assert said(f"a{letters}") + called("{}") == events


def test_white_space_is_that_of_json():
    assert set(" \t\r\n") == set(WHITE_SPACE)
