"""What becomes of a call that the end of an output cuts short, by the choice of tools."""

import pytest

from service.generation.events import ReasoningDelta, TextDelta, ToolCallEnd, ToolCallStart
from service.text.dialect import Turn
from service.text.dialects.registry import DIALECTS
from service.text.tools import NamedTool, Tool, ToolChoice

CALL = '<tool_call>\n{"name": "w", "arguments": {"city": "Brno"}}\n</tool_call>'
MUST_CALL = (ToolChoice.REQUIRED, NamedTool("w"))
CUTS = ("<", "<tool_c", "<tool_call>", '<tool_call>\n{"na')


def events_of(choice, *pieces):
    parser = DIALECTS["hermes"].parser(Turn(tools=(Tool("w"),), choice=choice))
    events = []
    for piece in pieces:
        parser, found = parser.read(piece)
        events += found
    return [*events, *parser.finish()]


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("choice", MUST_CALL)
def test_beginning_of_a_call_is_no_text_where_there_can_be_none(choice, cut):
    assert [] == events_of(choice, cut)
    started, *_, ended = events_of(choice, CALL, "\n" + cut)
    assert (ToolCallStart(0, "call_0", "w"), ToolCallEnd()) == (started, ended)


@pytest.mark.parametrize("cut", CUTS)
def test_beginning_of_a_call_is_text_where_there_can_be_some(cut):
    assert [TextDelta(cut)] == events_of(ToolChoice.AUTO, cut)


@pytest.mark.parametrize("choice", MUST_CALL)
def test_reasoning_that_is_cut_short_is_kept(choice):
    parser = DIALECTS["hermes"].parser(Turn("<think>", (Tool("w"),), choice))
    parser, events = parser.read("weighing it</thi")
    assert [ReasoningDelta("weighing it"), ReasoningDelta("</thi")] == [*events, *parser.finish()]
    assert parser.is_reasoning


def test_special_token_is_read_by_the_parser_inside():
    parser = DIALECTS["hermes"].parser(Turn(tools=(Tool("w"),), choice=ToolChoice.REQUIRED))
    parser, _ = parser.mark("<tool_call>")
    parser, events = parser.read('{"name": "w", "arguments": {}}')
    assert ToolCallEnd() == events[-1]
