import math

import pytest

from outrider import Chat, Message, Options
from outrider.calls import MAX_TIMEOUT_SECONDS, call_timeout
from outrider.requests import generation_message
from outrider.v1 import chat_pb2, generation_pb2, settings_pb2

Generation = generation_pb2.Generation


def test_every_setting_of_the_contract_is_an_option():
    """`stops` is called `stop` here, and `mode` is called `speculation`."""
    settings = set(settings_pb2.GenerationSettings.DESCRIPTOR.fields_by_name)
    speculation = set(settings_pb2.SpeculationSettings.DESCRIPTOR.fields_by_name)
    generation = set(Generation.DESCRIPTOR.fields_by_name)
    nested = {"text", "token_ids", "chat", "settings", "speculation"}
    contract = (settings - {"stops"}) | (speculation - {"mode"}) | (generation - nested)
    assert contract | {"request_id", "stop", "speculation"} == set(Options.__annotations__)


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


def test_nested_settings_pass_through():
    dry = settings_pb2.DrySettings(multiplier=0.5)
    settings = generation_message("x", {"dry": dry, "logit_bias": {3: -1.0}}).settings
    assert (dry, {3: -1.0}) == (settings.dry, dict(settings.logit_bias))


def test_unknown_option_is_a_type_error():
    with pytest.raises(TypeError, match="top_q"):
        generation_message("x", {"top_q": 1})


def test_unknown_mode_is_a_value_error():
    with pytest.raises(ValueError, match="SPECULATION_MODE_MAGIC"):
        generation_message("x", {"speculation": "magic"})


@pytest.mark.parametrize("seconds", [math.inf, math.nan, -1.0, 1e10])
def test_timeout_that_is_no_time_is_refused(seconds):
    with pytest.raises(ValueError, match="timeout must be 0 to 31536000 seconds"):
        call_timeout({"timeout": seconds})


@pytest.mark.parametrize("seconds", [0.0, 2, MAX_TIMEOUT_SECONDS])
def test_timeout_is_the_deadline_of_the_call(seconds):
    assert seconds == call_timeout({"timeout": seconds})
    assert call_timeout({}) is None
