import json
import math
import re
from typing import Any

import pytest

from outrider import Chat, ChatOptions, Dry, Message, Mirostat, Options, Tool, Xtc
from outrider.calls import MAX_TIMEOUT_SECONDS, call_timeout
from outrider.requests import conversation, generation_message
from outrider.v1 import chat_pb2, generation_pb2, settings_pb2

Generation = generation_pb2.Generation


def test_every_setting_of_the_contract_is_an_option():
    """`stops` is `stop` here, `mode` is `speculation`, and a constraint goes by its language."""
    settings = set(settings_pb2.GenerationSettings.DESCRIPTOR.fields_by_name)
    speculation = set(settings_pb2.SpeculationSettings.DESCRIPTOR.fields_by_name)
    generation = set(Generation.DESCRIPTOR.fields_by_name)
    nested = {"text", "token_ids", "chat", "settings", "speculation"}
    languages = set(settings_pb2.Constraint.DESCRIPTOR.fields_by_name)
    contract = (settings - {"stops", "constraint"}) | languages
    contract |= (speculation - {"mode"}) | (generation - nested)
    assert contract | {"request_id", "stop", "speculation"} == set(Options.__annotations__)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Dry, settings_pb2.DrySettings),
        (Xtc, settings_pb2.XtcSettings),
        (Mirostat, settings_pb2.MirostatSettings),
    ],
)
def test_every_part_of_a_setting_is_an_option(options, message):
    assert set(message.DESCRIPTOR.fields_by_name) == set(options.__annotations__)


def test_every_part_of_a_conversation_is_an_option_of_chat():
    parts = set(chat_pb2.Chat.DESCRIPTOR.fields_by_name) - {"messages"}
    assert parts == set(ChatOptions.__annotations__) - set(Options.__annotations__)


def test_prompt_text_alone_says_nothing_else():
    message = generation_message("once", {})
    assert (
        Generation(
            text="once",
            settings=settings_pb2.GenerationSettings(),
            speculation=settings_pb2.SpeculationSettings(),
        )
        == message
    )


def test_tokens_and_conversations_are_prompts_too():
    turns = [Message("user", "hi"), {"role": "assistant", "content": "ho"}]
    assert [1, 2] == list(generation_message([1, 2], {}).token_ids.ids)
    expected = [
        chat_pb2.ChatMessage(role="user", content="hi"),
        chat_pb2.ChatMessage(role="assistant", content="ho"),
    ]
    assert expected == list(generation_message(Chat(turns), {}).chat.messages)


def test_explicit_zeros_are_sent():
    settings = generation_message("x", {"temperature": 0.0, "seed": 0, "top_k": 0}).settings
    assert [True] * 3 == [settings.HasField(name) for name in ("temperature", "seed", "top_k")]


def test_speculation_options_arrive():
    options: Options = {
        "speculation": "prompt_lookup",
        "proposer": "p",
        "num_speculative_tokens": 4,
        "lookahead": False,
    }
    expected = settings_pb2.SpeculationSettings(
        mode=settings_pb2.SPECULATION_MODE_PROMPT_LOOKUP,
        proposer="p",
        num_speculative_tokens=4,
        lookahead=False,
    )
    assert expected == generation_message("x", options).speculation


@pytest.mark.parametrize(
    ("stop", "expected"),
    [
        ("a", [settings_pb2.Stop(text="a")]),
        (0, [settings_pb2.Stop(token_id=0)]),
        (["a", 7], [settings_pb2.Stop(text="a"), settings_pb2.Stop(token_id=7)]),
    ],
)
def test_stops_are_texts_or_tokens(stop: str | int | list, expected: list):
    assert expected == list(generation_message("x", {"stop": stop}).settings.stops)


def settings_of(**options: Any) -> settings_pb2.GenerationSettings:
    return generation_message("x", options).settings


def test_every_nested_setting_arrives():
    settings = settings_of(
        dry={"multiplier": 0.5, "allowed_length": 3, "sequence_breakers": [";"]},
        xtc={"probability": 0.25},
        mirostat={"version": 1, "tau": 3.0},
        sampler_order="temperature_last",
        logit_bias={3: -1.0},
        allowed_token_ids=[1, 2],
        banned_token_ids=[2],
        logprobs=0,
    )
    breakers = settings_pb2.SequenceBreakers(texts=[";"])
    dry = settings_pb2.DrySettings(multiplier=0.5, allowed_length=3, sequence_breakers=breakers)
    expected = settings_pb2.GenerationSettings(
        dry=dry,
        xtc=settings_pb2.XtcSettings(probability=0.25),
        mirostat=settings_pb2.MirostatSettings(version=1, tau=3.0),
        sampler_order=settings_pb2.SAMPLER_ORDER_TEMPERATURE_LAST,
        logit_bias={3: -1.0},
        allowed_token_ids=[1, 2],
        banned_token_ids=[2],
        logprobs=0,
    )
    assert expected == settings


def test_empty_group_and_empty_breakers_are_sent():
    """They are values: the defaults of the contract, and nothing that ends a run."""
    settings = settings_of(dry={"sequence_breakers": []}, xtc={})
    assert settings.dry.HasField("sequence_breakers")
    assert settings.HasField("xtc")


SCHEMA = {"type": "object", "properties": {"é": {"type": "integer"}}}
Constraint = settings_pb2.Constraint


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"json": True}, Constraint(json=Constraint.AnyJson())),
        ({"json_schema": "{}"}, Constraint(json_schema="{}")),
        ({"json_schema": SCHEMA}, Constraint(json_schema=json.dumps(SCHEMA, ensure_ascii=False))),
        ({"regex": "a+"}, Constraint(regex="a+")),
        ({"lark": 'start: "a"'}, Constraint(lark='start: "a"')),
        ({"choice": ["a", "b"]}, Constraint(choice=Constraint.Choice(texts=["a", "b"]))),
        ({"choice": ["a"], "json": False}, Constraint(choice=Constraint.Choice(texts=["a"]))),
    ],
)
def test_constraint_goes_by_its_language(options: dict, expected: Constraint):
    assert expected == settings_of(**options).constraint


def test_no_constraint_is_none():
    assert [False, False] == [
        settings_of(**options).HasField("constraint") for options in ({}, {"json": False})
    ]


def test_two_constraints_exclude_each_other():
    with pytest.raises(ValueError, match="json and regex exclude each other"):
        settings_of(regex="a", json=True)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"seed": -1}, "seed=-1: "),
        ({"max_new_tokens": 2**40}, "max_new_tokens=1099511627776: "),
        ({"logit_bias": {-5: 1.0}}, "logit_bias={-5: 1.0}: "),
        ({"dry": {"strength": 1}}, "dry={'strength': 1}: "),
        (
            {"sampler_order": "middle"},
            "sampler_order='middle': must be one of temperature_first, temperature_last",
        ),
        ({"allowed_token_ids": []}, "allowed_token_ids=[]: must not be empty"),
        ({"speculation": "off"}, "speculation='off': must be one of auto, none, prompt_lookup"),
        ({"speculation": False}, "speculation=False: must be one of auto"),
    ],
)
def test_value_that_does_not_fit_is_told_by_its_option(options: dict, told: str):
    with pytest.raises(ValueError, match=f"^{re.escape(told)}"):
        settings_of(**options)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"top_k": 2.5}, "top_k=2.5: "),
        ({"temperature": "hot"}, "temperature='hot': "),
        ({"banned_token_ids": ["a"]}, "banned_token_ids=['a']: "),
        ({"xtc": 0.5}, "xtc=0.5: "),
        ({"stop": 2.5}, "stop=2.5: must list its values, not be one float"),
        ({"regex": 5}, "regex=5: must be a text, not int"),
        ({"model": 5}, "model=5: must be a text, not int"),
        ({"choice": ["a", 5]}, "choice=['a', 5]: must be a text, not int"),
        ({"json_schema": {1}}, "json_schema={1}: "),
    ],
)
def test_value_of_another_type_is_told_by_its_option(options: dict, told: str):
    with pytest.raises(TypeError, match=f"^{re.escape(told)}"):
        settings_of(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"choice": "yes"},
        {"stop": b"yes"},
        {"allowed_token_ids": b"yes"},
        {"dry": {"sequence_breakers": "yes"}},
    ],
)
def test_one_text_is_not_read_as_its_characters(options: dict):
    with pytest.raises(TypeError, match="must list its values"):
        settings_of(**options)


@pytest.mark.parametrize("prompt", [b"once", None, 5, [1, "a"], [{"role": "user"}]])
def test_prompt_that_is_none_is_told_as_the_prompt(prompt: Any):
    with pytest.raises(TypeError, match=r"^prompt="):
        generation_message(prompt, {})


def test_option_that_is_none_is_absent():
    nothing: Any = dict.fromkeys(Options.__annotations__)
    assert generation_message("x", {}) == generation_message("x", nothing)
    assert (Chat([]), {}) == conversation([], dict.fromkeys(ChatOptions.__annotations__))


def test_options_of_a_conversation_are_told_apart():
    chat, others = conversation([Message("user")], {"tools": [Tool("f")], "top_k": 3})
    assert (Chat([Message("user")], [Tool("f")]), {"top_k": 3}) == (chat, others)


def test_unknown_option_is_a_type_error():
    with pytest.raises(TypeError, match="top_q"):
        generation_message("x", {"top_q": 1})


@pytest.mark.parametrize("seconds", [math.inf, math.nan, -1.0, 1e10])
def test_timeout_that_is_no_time_is_refused(seconds):
    with pytest.raises(ValueError, match=r"^timeout=.*: must be 0 to 31536000 seconds"):
        call_timeout({"timeout": seconds})


@pytest.mark.parametrize("seconds", [0.0, 2, MAX_TIMEOUT_SECONDS])
def test_timeout_is_the_deadline_of_the_call(seconds):
    assert seconds == call_timeout({"timeout": seconds})
    assert call_timeout({}) is None
