import pytest
from google.protobuf.duration_pb2 import Duration

from outrider.v1 import chat_pb2, generation_pb2, settings_pb2
from service.generation.config import GenerationOverrides
from service.rpc.requests import generation_request, timeout_of
from service.runtime.request import (
    ChatMessage,
    ChatPrompt,
    GenerationRequest,
    SpeculationMode,
    SpeculationRequest,
    Stop,
    TextPrompt,
    TokenPrompt,
)

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


def test_explicit_zeros_are_values():
    """Case B58: absence and zero differ for every numeric field."""
    message = Generation(
        text="x", settings=Settings(top_k=0, top_p=0, min_p=0, repeat_last_n=0, seed=0)
    )
    request = converted(message)
    expected = GenerationOverrides(top_k=0, top_p=0.0, min_p=0.0, repeat_last_n=0)
    assert (expected, 0) == (request.overrides, request.seed)


def test_chat_turns_arrive_in_order():
    turns = [chat_pb2.ChatMessage(role="system", content="a"), chat_pb2.ChatMessage(role="user")]
    expected = ChatPrompt((ChatMessage("system", "a"), ChatMessage("user", "")))
    assert expected == converted(Generation(chat=chat_pb2.Chat(messages=turns))).prompt


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
