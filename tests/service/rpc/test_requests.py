from dataclasses import fields

import pytest
from google.protobuf.duration_pb2 import Duration

from outrider.v1 import chat_pb2, generation_pb2, settings_pb2
from service.generation.config import GenerationOverrides
from service.generation.sampling import (
    DrySettings,
    MirostatSettings,
    SamplerOrder,
    SequenceBreakers,
    XtcSettings,
)
from service.rpc.requests import generation_request, overrides_of, timeout_of
from service.runtime.request import (
    ChatPrompt,
    GenerationRequest,
    SpeculationMode,
    SpeculationRequest,
    Stop,
    TextPrompt,
    TokenPrompt,
)
from service.text.conversation import ChatMessage
from service.text.language import Regex

Generation = generation_pb2.Generation
Settings = settings_pb2.GenerationSettings


def converted(message: Generation, *, request_id: str = "r") -> GenerationRequest:
    return generation_request(message, request_id=request_id, caller="c", time_remaining=None)


def test_empty_settings_leave_everything_open():
    expected = GenerationRequest("r", "c", "", TextPrompt("once"))
    assert expected == converted(Generation(text="once"))


def test_every_served_field_arrives():
    message = Generation(
        model="m",
        token_ids=generation_pb2.TokenIds(ids=[3, 1]),
        settings=Settings(
            do_sample=True,
            temperature=0.5,
            top_k=7,
            top_p=0.25,
            min_p=0.125,
            repetition_penalty=1.5,
            repeat_last_n=-1,
            frequency_penalty=0.75,
            presence_penalty=-0.5,
            seed=2**64 - 1,
            max_new_tokens=9,
            max_context=99,
            stops=[settings_pb2.Stop(text="end"), settings_pb2.Stop(token_id=0)],
            include_stop=True,
            stop_on_eos=False,
            eos_token_id=5,
        ),
        speculation=settings_pb2.SpeculationSettings(
            mode=settings_pb2.SPECULATION_MODE_PROMPT_LOOKUP,
            proposer="p",
            num_speculative_tokens=3,
            lookahead=False,
        ),
        timeout=Duration(seconds=1, nanos=500_000_000),
        component_timings=True,
    )
    expected = GenerationRequest(
        request_id="r",
        caller="c",
        model="m",
        prompt=TokenPrompt((3, 1)),
        overrides=GenerationOverrides(
            do_sample=True,
            temperature=0.5,
            top_k=7,
            top_p=0.25,
            min_p=0.125,
            repetition_penalty=1.5,
            repeat_last_n=-1,
            frequency_penalty=0.75,
            presence_penalty=-0.5,
            max_new_tokens=9,
        ),
        seed=2**64 - 1,
        stops=(Stop(text="end"), Stop(token_id=0)),
        include_stop=True,
        stop_on_eos=False,
        eos_token_id=5,
        max_context=99,
        speculation=SpeculationRequest(
            SpeculationMode.PROMPT_LOOKUP, "p", num_speculative_tokens=3, lookahead=False
        ),
        timeout=1.5,
        component_timings=True,
    )
    assert expected == converted(message)


def test_every_sampling_group_arrives():
    """With what stops it short of its defaults, part by part."""
    message = Settings(
        top_a=0.5,
        typical_p=0.75,
        dry=settings_pb2.DrySettings(
            multiplier=2.0,
            base=1.5,
            allowed_length=3,
            sequence_breakers=settings_pb2.SequenceBreakers(texts=[";", "x"]),
        ),
        xtc=settings_pb2.XtcSettings(probability=0.25, threshold=0.125),
        mirostat=settings_pb2.MirostatSettings(version=1, tau=3.0, eta=0.5),
        sampler_order=settings_pb2.SAMPLER_ORDER_TEMPERATURE_LAST,
        logit_bias={5: -1.5, 0: 2.0},
        allowed_token_ids=[3, 1, 3],
        banned_token_ids=[2],
        min_new_tokens=4,
        logprobs=5,
        prompt_logprobs=0,
    )
    expected = GenerationOverrides(
        top_a=0.5,
        typical_p=0.75,
        dry=DrySettings(2.0, 1.5, 3, SequenceBreakers((";", "x"))),
        xtc=XtcSettings(0.25, 0.125),
        mirostat=MirostatSettings(1, 3.0, 0.5),
        sampler_order=SamplerOrder.TEMPERATURE_LAST,
        logit_bias={5: -1.5, 0: 2.0},
        allowed_token_ids=frozenset({1, 3}),
        banned_token_ids=frozenset({2}),
        min_new_tokens=4,
        logprobs=5,
        prompt_logprobs=0,
    )
    assert expected == overrides_of(message)


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ({"dry": settings_pb2.DrySettings()}, {"dry": DrySettings()}),
        ({"xtc": settings_pb2.XtcSettings()}, {"xtc": XtcSettings()}),
        ({"mirostat": settings_pb2.MirostatSettings()}, {"mirostat": MirostatSettings()}),
        (
            {"dry": settings_pb2.DrySettings(sequence_breakers=settings_pb2.SequenceBreakers())},
            {"dry": DrySettings(sequence_breakers=SequenceBreakers(()))},
        ),
        ({"sampler_order": settings_pb2.SAMPLER_ORDER_UNSPECIFIED}, {}),
        ({"logit_bias": {}, "allowed_token_ids": [], "banned_token_ids": []}, {}),
    ],
)
def test_present_group_with_absent_parts_has_its_defaults(group: dict, expected: dict):
    """Case B58: a group that is there counts, and an empty list or map is none."""
    assert GenerationOverrides(**expected) == overrides_of(Settings(**group))


def numeric_settings() -> list[str]:
    """Return the fields of numbers, those of the parts of settings by their paths."""
    parts = {"dry": DrySettings, "xtc": XtcSettings, "mirostat": MirostatSettings}
    nested = [f"{group}.{field.name}" for group, kind in parts.items() for field in fields(kind)]
    scalar = [
        field.name
        for field in Settings.DESCRIPTOR.fields
        if field.message_type is None and not field.is_repeated
    ]
    return [path for path in scalar + nested if path != "dry.sequence_breakers"]


@pytest.mark.parametrize("path", numeric_settings())
def test_explicit_zero_is_a_value_of_every_setting(path: str):
    """Case B58: absence and zero differ, for every field that is no message."""
    *group, name = path.split(".")
    absent, zero = Settings(), Settings()
    target = getattr(zero, group[0]) if group else zero
    setattr(target, name, 0)
    assert target.HasField(name)
    requests = [converted(Generation(text="x", settings=given)) for given in (absent, zero)]
    assert (path in NEUTRAL_AT_ZERO) is (requests[0] == requests[1])


NEUTRAL_AT_ZERO = frozenset({"include_stop", "sampler_order"})
"""Zero is what absence means: off, and an order that is not stated."""


def test_explicit_zeros_arrive_as_they_are():
    """Case B58."""
    message = Generation(
        text="x", settings=Settings(top_k=0, top_p=0, min_p=0, repeat_last_n=0, seed=0)
    )
    request = converted(message)
    expected = GenerationOverrides(top_k=0, top_p=0.0, min_p=0.0, repeat_last_n=0)
    assert (expected, 0) == (request.overrides, request.seed)


def test_constraint_and_conversation_arrive_together():
    message = Generation(
        chat=chat_pb2.Chat(messages=[chat_pb2.ChatMessage(role="user", content="a")]),
        settings=Settings(constraint=settings_pb2.Constraint(regex="[0-9]+")),
    )
    request = converted(message)
    assert (Regex("[0-9]+"), ChatPrompt((ChatMessage("user", "a"),))) == (
        request.constraint,
        request.prompt,
    )


@pytest.mark.parametrize("temperature", [0.0, 1e-46, 1e-6])
def test_temperature_too_small_to_divide_by_is_greedy(temperature: float):
    """Case B29: greedy, also where sampling was asked for, and said so in the echo."""
    message = Generation(text="x", settings=Settings(temperature=temperature))
    expected = GenerationOverrides(temperature=0.0, do_sample=False)
    assert expected == converted(message).overrides


def test_empty_id_becomes_one_of_its_own():
    first, second = (converted(Generation(text="x"), request_id="").request_id for _ in range(2))
    assert first
    assert first != second


@pytest.mark.parametrize(
    ("own", "remaining", "expected"),
    [(None, None, None), (2.0, None, 2.0), (None, 3.0, 3.0), (2.0, 3.0, 2.0), (4.0, 3.0, 3.0)],
)
def test_nearer_of_timeout_and_deadline_holds(
    own: float | None, remaining: float | None, expected: float | None
):
    timeout = None if own is None else Duration(seconds=int(own))
    assert expected == timeout_of(Generation(timeout=timeout), remaining)
