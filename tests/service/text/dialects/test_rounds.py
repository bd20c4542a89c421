"""Parsers behind stops and bytes: tokens go in by rounds, events come out."""

import json
import sys

import pytest

from service.generation.events import (
    Finished,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallEnd,
    ToolCallStart,
)
from service.generation.finish import FinishReason, MatchedStop
from service.runtime.request import Stop
from service.text.dialect import Turn
from service.text.dialects.hermes import hermes_parser
from service.text.dialects.think import think_parser
from service.text.state import GeneratedText, TextRules
from service.text.stops import compile_stops
from service.text.vocabulary import Vocabulary
from tests.service.text.dialects.cases import CASES
from tests.service.text.dialects.readings import (
    OFFERED,
    Mark,
    broken_off,
    called,
    chunked_pieces,
    chunks,
    joined,
    read,
    said,
    thought,
)

STOPPED, MAX = FinishReason.STOP_SEQUENCE, FinishReason.MAX_TOKENS
OPENED = Turn("<think>\n")


def output(parser, tokens, *stops):
    """Return the state of an output whose token `i` is `tokens[i]`: bytes, or a marker."""
    spelled = tuple(t.marker.encode() if isinstance(t, Mark) else t for t in tokens)
    marks = {i: t.marker for i, t in enumerate(tokens) if isinstance(t, Mark)}
    vocabulary = Vocabulary(spelled, frozenset(marks))
    compiled = compile_stops(stops, vocabulary)
    return GeneratedText(TextRules(vocabulary, compiled, parser=parser, markers=marks))


def play(state, count, width, reason=MAX):
    """Commit tokens in rounds, each on a fork; return the deltas of the rounds, and the stop."""
    rounds, stop = [], None
    for start in range(0, count, width):
        tentative = state.fork()
        tentative.push_token(start)
        state = state.fork()
        for token in range(start, min(start + width, count)):
            if stop is None:
                stop = state.push_token(token)
        rounds.append(state.take_events())
    state.finish(STOPPED if stop else reason)
    rounds.append(state.take_events())
    return rounds, stop, state


def events_of(rounds):
    return joined(event for events in rounds for event in events)


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("stray", ["", "<tool_call>", "see <tool_call> or\n"])
def test_call_in_rounds_has_one_name_and_one_object(stray, width):
    """B37: whatever the tokens of a delta, also after a marker that began nothing."""
    call = '<tool_call>{"name":"weather","arguments":{"city":"Prague"}}</tool_call>'
    tokens = [piece.encode() for piece in chunks(stray + call, 3)]
    rounds, _, _ = play(output(hermes_parser(OFFERED), tokens), len(tokens), width)
    events = [event for round_ in rounds for event in round_]
    arguments = "".join(e.json_fragment for e in events if isinstance(e, ToolArgumentsDelta))

    assert {"city": "Prague"} == json.loads(arguments)
    assert [ToolCallStart(0, "call_0", "weather")] == [
        event for event in events if isinstance(event, ToolCallStart)
    ]
    assert [ToolCallEnd()] == [event for event in events if isinstance(event, ToolCallEnd)]
    assert stray.strip() == "".join(e.text for e in events if isinstance(e, TextDelta)).strip()


@pytest.mark.parametrize("width", [1, 2, 3, 7])
@pytest.mark.parametrize("case", CASES, ids=[f"{case.dialect}: {case.id}" for case in CASES])
def test_outputs_in_rounds_are_their_events(case, width):
    pieces = list(chunked_pieces(case.pieces(), 2))
    tokens = [p if isinstance(p, Mark) else p.encode() for p in pieces]
    rounds, _, _ = play(output(case.parser(), tokens), len(tokens), width)

    assert (*case.events, Finished(MAX)) == events_of(rounds)


WEIGHED = "weighing it</think>Answer."


@pytest.mark.parametrize("cut", range(1, len(WEIGHED)))
def test_closing_tag_is_found_at_every_cut(cut):
    """B39: two deltas, cut anywhere."""
    events = read(think_parser(OPENED), [WEIGHED[:cut], WEIGHED[cut:]])

    assert thought("weighing it") + said("Answer.") == events


@pytest.mark.parametrize("size", range(1, len(WEIGHED) + 1))
def test_closing_tag_is_found_in_chunks(size):
    """B39: and in chunks of any size."""
    assert thought("weighing it") + said("Answer.") == read(
        think_parser(OPENED), chunks(WEIGHED, size)
    )


def test_unfinished_tag_at_the_end_is_literal():
    """B39: what began like the tag is part of the reasoning."""
    assert thought("weighing it</thi") == read(think_parser(OPENED), list("weighing it</thi"))


def count_calls(parser, text):
    """Return how many calls of functions reading a text costs, one character at a time."""
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        read(parser, text)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize(
    ("head", "unit"),
    [
        ("<think>", "a </thin"),
        ("", "word "),
        ("", " \n"),
        ("", "<tool_call>"),
        ("", '<tool_call>{"a":'),
        ('<tool_call>{"a":"', "<tool_call>"),
        ('<tool_call>{"arguments":{"a":[', '"<tool_call>",'),
        ('<tool_call>{"name":"weather","arguments":{"a":[', "[[1],"),
    ],
)
def test_cost_is_linear_in_the_length(head, unit):
    """B39: twice the text costs about twice the work, also where it is held and read anew."""
    once, twice = (count_calls(hermes_parser(OFFERED), head + unit * n) for n in (200, 400))

    assert twice < 2.2 * once


@pytest.mark.parametrize("width", [1, 2, 3])
def test_stop_while_a_call_may_begin_loses_nothing(width):
    """B40: what the parser held is text, since the output ended."""
    tokens = [b"hello", b" <tool", b"_call", b"EN", b"D more"]
    state = output(hermes_parser(OFFERED), tokens, Stop(text="END"))
    rounds, stop, _ = play(state, len(tokens), width)

    assert (TextDelta("hello <tool_call"), Finished(STOPPED)) == events_of(rounds)
    assert MatchedStop(0, text="END") == stop


def test_stop_token_while_a_call_may_begin_loses_nothing():
    """B40: the same for a stop by id, and behind a marker that is one token."""
    tokens = [b"hello ", Mark("<tool_call>"), b'{"na', b"END"]
    state = output(hermes_parser(OFFERED), tokens, Stop(token_id=3))
    rounds, _, _ = play(state, len(tokens), 4)

    assert (TextDelta('hello <tool_call>{"na'), Finished(STOPPED)) == events_of(rounds)


def test_cancel_drops_what_a_parser_holds():
    state = output(hermes_parser(OFFERED), [b"hello <tool_call"])
    state.push_token(0)
    state.cancel()

    assert (TextDelta("hello"), Finished(FinishReason.CANCELLED)) == state.take_events()


@pytest.mark.parametrize("width", [1, 3, 8])
@pytest.mark.parametrize(
    ("closed_at", "reasoning"), [(None, 64), (63, 64), (31, 32), (0, 1)], ids=str
)
def test_reasoning_tokens_are_those_up_to_the_closing_tag(closed_at, reasoning, width):
    """B41: never more than the tokens of the output, wherever its budget ends."""
    tokens = [b" hm"] * 64
    if closed_at is not None:
        tokens[closed_at] = b"</think>"
    _, _, state = play(output(think_parser(OPENED), tokens), 64, width)

    assert reasoning == state.reasoning_tokens


def test_rejected_reasoning_is_not_counted():
    """B41: a fork counts for itself."""
    state = output(think_parser(OPENED), [b"a", b"b"])
    state.push_token(0)
    state.fork().push_token(1)

    assert 1 == state.reasoning_tokens


def test_opening_tag_is_not_reasoning_yet():
    state = output(think_parser(Turn()), [b"<think>", b"hm", b"</think>", b"So."])
    _, _, state = play(state, 4, 2)

    assert 2 == state.reasoning_tokens


@pytest.mark.parametrize("width", [1, 2, 5])
def test_characters_split_into_bytes_are_whole_in_every_delta(width):
    """B42: in the reasoning, in arguments and in text."""
    word = "👩‍💻é日本"
    arguments = f'{{"q": "{word}"}}'
    text = (
        f"<think>{word}</think>{word}"
        f'<tool_call>{{"name":"weather","arguments":{arguments}}}</tool_call>'
    )
    tokens = [bytes([byte]) for byte in text.encode()]
    rounds, _, _ = play(output(hermes_parser(OFFERED), tokens), len(tokens), width)

    assert (*thought(word), *said(word), *called(arguments), Finished(MAX)) == events_of(rounds)


def test_neighbouring_deltas_of_a_round_are_one():
    text = '<think>a b c</think>d e<tool_call>{"name":"weather","arguments":{"a":1}}'
    tokens = [character.encode() for character in text]
    rounds, _, _ = play(output(hermes_parser(OFFERED), tokens), len(tokens), len(tokens))

    assert (ReasoningDelta("a b c"), TextDelta("d e"), *called('{"a":1}')) == rounds[0]


def test_stop_in_the_arguments_leaves_the_call_incomplete():
    tokens = [b'<tool_call>{"name":"weather","argum', b'ents":{"a":"EN', b"D"]
    rounds, _, _ = play(output(hermes_parser(OFFERED), tokens, Stop(text="END")), 3, 2)

    assert (*broken_off('{"a":"'), Finished(STOPPED)) == events_of(rounds)
