"""Tool calls that come in rounds of several tokens, and stops while one may be beginning."""

from __future__ import annotations

import json

import pytest

from outrider.v1 import chat_pb2, generation_pb2
from tests.cases.asking import EOS, NONE, STOP, output_of, played, stop_at, told
from tests.cases.stage import EOS as END
from tests.cases.stage import ReplyLaw, VisibleLaw, staged, with_heedless
from tests.cases.streaming import Streamed, streamed
from tests.service.rpc.harness import complete, served

pytestmark = pytest.mark.asyncio

SCHEMA = '{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}'
CALL = '<tool_call>{"name":"w","arguments":{"city":"Prague"}}</tool_call>'
# What began like a marker and was none, before the call.
STRAYS = ("", "see <tool_cal or <tool_cal")


def calling(proposer, width, **settings) -> generation_pb2.Generation:
    message = told("weather?", "hermes", proposer, width, **settings)
    message.chat.tools.append(chat_pb2.Tool(name="w", parameters_json_schema=SCHEMA))
    return message


def pieces(answer: Streamed, kind: str) -> list:
    return [getattr(e, kind) for e in answer.events if e.WhichOneof("event") == kind]


@pytest.mark.parametrize("stray", STRAYS)
@pytest.mark.parametrize("width", [None, 1, 2, 3, 4, 5])
async def test_b37_arguments_arrive_once_whatever_a_round_holds(width, stray):
    """B37: several tokens a delta encode the arguments twice, or repeat their end."""
    model = staged(ReplyLaw(tuple((stray + CALL).encode())))
    message = calling(NONE if width is None else "right", width)
    async with served(model) as server:
        answer = await streamed(server, message)
        whole = await complete(server, message)

    (start,) = pieces(answer, "tool_call_start")
    assert (0, "w") == (start.index, start.name)
    deltas = pieces(answer, "tool_arguments_delta")
    assert {"city": "Prague"} == json.loads("".join(delta.json_fragment for delta in deltas))
    assert 1 == len(pieces(answer, "tool_call_end"))
    assert EOS == answer.finished.reason
    assert stray.rstrip() == answer.text.rstrip() == whole.text.rstrip()
    (call,) = whole.tool_calls
    assert ("w", {"city": "Prague"}) == (call.name, json.loads(call.arguments_json))


BOUNDED = json.dumps(
    {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 9}, "n": {"enum": [1, 22]}},
        "required": ["city", "n"],
        "additionalProperties": False,
    }
)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("dialect", ["llama3_json", "llama3_python", "mistral_args", "harmony"])
async def test_b31_a_draft_that_heeds_no_grammar_breaks_no_call(dialect, temperature):
    """B31: the grammar of a required call sees proposals that it forbids, and what is behind it."""
    model = with_heedless(staged(VisibleLaw()), "fence", (*b'"}', END, *b"\n\n```") * 30)
    messages = []
    for proposer, width in ((NONE, None), ("fence", 8), ("own-law", 4), ("lookup", 4)):
        settings = {"temperature": temperature, "seed": 3, "max_new_tokens": 200}
        message = told("weather?", dialect, proposer, width, **settings)
        message.chat.tools.append(chat_pb2.Tool(name="w", parameters_json_schema=BOUNDED))
        message.chat.tool_choice.mode = chat_pb2.TOOL_CHOICE_MODE_REQUIRED
        message.chat.parallel_tool_calls = False
        messages.append(message)
    answers = played(model, messages)

    for answer in answers:
        for call in answer.tool_calls:
            assert {"city", "n"} == {*json.loads(call.arguments_json)}
    if temperature == 0.0:
        assert 1 == len({(output_of(answer), str(answer.tool_calls)) for answer in answers})
    else:
        assert any(answer.tool_calls for answer in answers)


@pytest.mark.parametrize("width", [None, 1, 2, 3, 4, 5, 8])
async def test_b40_a_stop_while_a_call_may_begin_loses_no_text(width):
    """B40: what a parser of calls was holding back is lost when a stop ends the output."""
    model = staged(ReplyLaw(tuple(b"hello <tool_callEND and more")))
    message = calling(NONE if width is None else "right", width, stops=stop_at("END"))
    async with served(model) as server:
        answer = await streamed(server, message)
        whole = await complete(server, message)

    assert ("hello <tool_call", STOP) == (answer.text, answer.finished.reason)
    assert ("hello <tool_call", STOP) == (whole.text, whole.finished.reason)
    kinds = {event.WhichOneof("event") for event in answer.events}
    assert {"text_delta", "finished"} == kinds
