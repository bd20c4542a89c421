"""Tool calls from the request to the events, under speculation, in every dialect."""

import json

import pytest

from engines.scripted.model import ScriptedSettings
from service.generation.config import GenerationOverrides
from service.generation.events import TextDelta, ToolArgumentsDelta, ToolCallEnd, ToolCallStart
from service.generation.finish import FinishReason
from service.runtime.request import ChatPrompt
from service.runtime.text import ModelText
from service.text.chat import ChatTemplate
from service.text.conversation import ChatMessage
from service.text.dialects.registry import DIALECTS
from service.text.tools import NamedTool, Tool, ToolChoice
from tests.service.runtime.doubles import (
    EOS,
    LAW,
    TOKENIZER,
    DrivenEngine,
    drained,
    loaded_model,
    loaded_proposer,
    request,
    tokens_of,
)

SETTINGS = ScriptedSettings(law=LAW, max_context=2048, max_slots=4)
TEMPLATE = ChatTemplate("{{ tools | tojson }}{{ messages[0].content }}", path="t")
SCHEMA = {
    "type": "object",
    "properties": {"unit": {"enum": ["C", "F"]}, "exact": {"type": "boolean"}},
    "required": ["unit"],
    "additionalProperties": False,
}
TOOLS = (Tool("forecast", "", json.dumps(SCHEMA)), Tool("time", "", '{"maxProperties": 0}'))
CALLING = [name for name, dialect in DIALECTS.items() if dialect.writes_calls]


def engine(name, *rules):
    text = ModelText("m", TOKENIZER, TEMPLATE, DIALECTS[name], EOS)
    proposers = tuple(loaded_proposer(rule, rule) for rule in rules)
    return DrivenEngine(loaded_model(SETTINGS, text=text, proposers=proposers))


def asked(name, choice, temperature=1.0, max_new_tokens=300):
    """Ask a model that says anything for a call of a tool whose arguments are few.

    It might reason without end: hence the bias.
    """
    bias = {"harmony": {ord("c"): 90.0}}.get(name, {ord("h"): -90.0, ord("H"): -90.0, 0xEF: 90.0})
    return request(
        prompt=ChatPrompt(
            (ChatMessage("user", "Weather?"),), TOOLS, choice, parallel_tool_calls=False
        ),
        overrides=GenerationOverrides(
            max_new_tokens=max_new_tokens, temperature=temperature, logit_bias=bias
        ),
        seed=1,
    )


def answered(driven, given):
    ticket = driven.submit(given)
    driven.run()
    *rounds, ended = drained(ticket)
    return rounds, ended


def calls_of(rounds):
    """Return the calls by name and arguments, and the text beside them."""
    calls, text, ended = [], "", 0
    for event in (event for published in rounds for event in published.events):
        match event:
            case ToolCallStart(name=name):
                calls.append([name, ""])
            case ToolArgumentsDelta(index, fragment):
                calls[index][1] += fragment
            case ToolCallEnd():
                ended += 1
            case TextDelta(piece):
                text += piece
    assert ended == len(calls)
    return [(name, json.loads(arguments)) for name, arguments in calls], text


@pytest.mark.parametrize("name", CALLING)
def test_named_tool_is_called_once_and_nothing_else_is_said(name):
    rounds, ended = answered(engine(name, "mostly-right"), asked(name, NamedTool("forecast")))

    (call,), text = calls_of(rounds)
    assert "forecast" == call[0]
    assert call[1]["unit"] in SCHEMA["properties"]["unit"]["enum"]
    assert "" == text
    assert ended.reason in {FinishReason.GRAMMAR_COMPLETE, FinishReason.EOS}


@pytest.mark.parametrize("name", CALLING)
@pytest.mark.parametrize("rule", ["wrong", "mostly-right"])
def test_call_is_the_same_with_and_without_speculation(name, rule):
    """B37: however many tokens a round brings, and whichever were rejected."""
    given = asked(name, ToolChoice.REQUIRED, temperature=0.0)
    fast, _ = answered(engine(name, rule), given)
    plain, _ = answered(engine(name), given)

    assert calls_of(fast)[0]
    assert tokens_of(plain) == tokens_of(fast)
    assert calls_of(plain) == calls_of(fast)


@pytest.mark.parametrize("name", CALLING)
@pytest.mark.parametrize("choice", [ToolChoice.AUTO, ToolChoice.NONE])
def test_free_turn_is_the_same_with_and_without_speculation(name, choice):
    given = asked(name, choice, temperature=0.0, max_new_tokens=24)
    fast, _ = answered(engine(name, "mostly-right"), given)
    plain, _ = answered(engine(name), given)

    assert tokens_of(plain) == tokens_of(fast)
    assert calls_of(plain) == calls_of(fast)
