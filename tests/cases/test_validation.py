"""What a request may not say: refused by its field, before any work, and nobody else notices."""

from __future__ import annotations

import math

import grpc
import pytest

from engines.scripted.law import HashLaw
from engines.scripted.vocabulary import VOCABULARY_SIZE, Special
from outrider.v1 import generation_pb2, settings_pb2
from outrider.v1.generation_service_pb2 import StreamGenerateRequest
from outrider.v1.generation_service_pb2_grpc import GenerationServiceStub
from tests.cases.asking import LENGTH, NONE, asked, stop_at, tokens_of
from tests.cases.refusing import beside_a_control, refused, violations_of
from tests.cases.stage import staged
from tests.cases.streaming import broken_off
from tests.service.commands.process import serving
from tests.service.rpc.harness import complete, gone, served

INVALID = grpc.StatusCode.INVALID_ARGUMENT


def test_b22_an_empty_stop_ends_neither_the_process_nor_a_running_stream():
    """B22: an empty text reaches a search that aborts the whole process.

    A server of its own process; the refused requests arrive while another is being streamed.
    """
    with serving() as server, grpc.insecure_channel(server.address) as channel:
        stub = GenerationServiceStub(channel)
        running = stub.StreamGenerate(
            StreamGenerateRequest(generation=asked("hello", max_new_tokens=250)), timeout=60
        )
        assert "admitted" == next(running).WhichOneof("event")
        for stops in ([""], ["a", ""]):
            message = asked("hello", stops=stop_at(*stops))
            with pytest.raises(grpc.RpcError) as caught:
                next(stub.StreamGenerate(StreamGenerateRequest(generation=message), timeout=60))
            assert INVALID == caught.value.code()
            field = f"generation.settings.stops[{len(stops) - 1}].text"
            assert field in caught.value.details()
        *_, last = running

        assert last.HasField("finished")
        assert server.process.poll() is None


@pytest.mark.parametrize("temperature", [1e-6, 1e-46])
@pytest.mark.asyncio
async def test_b29_a_temperature_too_small_for_float32_is_greedy(temperature):
    """B29: it overflows to infinity or NaN, and sampling dies of it."""
    async with served(staged(HashLaw())) as server:
        greedy = await complete(server, asked("once", temperature=0.0, max_new_tokens=40))
        tiny = await complete(server, asked("once", temperature=temperature, max_new_tokens=40))

    assert tokens_of(greedy) == tokens_of(tiny)


@pytest.mark.asyncio
async def test_b29_a_top_p_of_zero_leaves_the_likeliest_token():
    """B29: zero is valid, and keeps one token."""
    async with served(staged(HashLaw())) as server:
        greedy = await complete(server, asked("once", temperature=0.0, max_new_tokens=40))
        one = await complete(
            server, asked("once", temperature=1.0, top_p=0.0, seed=3, max_new_tokens=40)
        )

    assert tokens_of(greedy) == tokens_of(one)


@pytest.mark.parametrize("top_k", [VOCABULARY_SIZE, VOCABULARY_SIZE + 1, 2**31 - 1])
@pytest.mark.asyncio
async def test_b29_a_top_k_beyond_the_vocabulary_is_off(top_k):
    """B29: it keeps all, as zero does."""
    settings = {"temperature": 1.0, "seed": 3, "max_new_tokens": 40}
    async with served(staged(HashLaw())) as server:
        free = await complete(server, asked("once", "own-law", 4, top_k=0, **settings))
        wide = await complete(server, asked("once", "own-law", 4, top_k=top_k, **settings))

    assert tokens_of(free) == tokens_of(wide)


OUT_OF_RANGE = [
    *(("temperature", value) for value in (math.nan, -1.0, math.inf, 1e39)),
    *(("top_p", value) for value in (2.0, math.nan)),
    ("top_k", -2),
    ("min_p", 2.0),
    *((f"{penalty}_penalty", math.nan) for penalty in ("frequency", "presence", "repetition")),
]


@pytest.mark.asyncio
async def test_b29_values_out_of_range_are_refused_by_their_field():
    """B29: they are taken as they are, and poison the engine's arithmetic."""
    async with beside_a_control(staged(HashLaw())) as server:
        for name, value in OUT_OF_RANGE:
            error = await refused(server, asked("once", **{name: value}))
            assert INVALID == error.code(), (name, value)
            assert {f"settings.{name}"} == set(violations_of(error)), (name, value)


@pytest.mark.parametrize("proposer", [NONE, "right", "lookup"])
@pytest.mark.asyncio
async def test_b29_a_row_without_any_token_ends_its_own_stream_alone(proposer):
    """B29: every logit is minus infinity, because the only tokens allowed may not end it yet."""
    message = asked(
        "once", proposer, allowed_token_ids=[int(Special.EOS)], min_new_tokens=2, temperature=1.0
    )
    async with beside_a_control(staged(HashLaw())) as server:
        error = await refused(server, message)
        after = await complete(server, asked("once", max_new_tokens=3))

    assert INVALID == error.code()
    assert "settings.allowed_token_ids" in error.details()
    assert "settings.min_new_tokens" in error.details()
    assert LENGTH == after.finished.reason


@pytest.mark.parametrize("proposer", [NONE, "right", "own-law"])
@pytest.mark.asyncio
async def test_b29_what_came_before_a_row_without_any_token_stays_and_its_slot_is_freed(proposer):
    """B29: three letters match the constraint, and the fourth that it wants is banned."""
    message = asked(
        "once",
        proposer,
        constraint=settings_pb2.Constraint(regex="abcd"),
        banned_token_ids=[ord("d")],
    )
    async with served(staged(HashLaw())) as server:
        tokens, error = await broken_off(server, message)
        statistics = await gone(server)

    assert "abc" == bytes(tokens).decode()
    assert INVALID == error.code()
    assert "settings.banned_token_ids" in error.details()
    assert "position 3" in error.details()
    assert (0, 1) == (statistics.active_lanes, statistics.failed_requests)


BEYOND = VOCABULARY_SIZE


def with_field_beyond_the_contract() -> generation_pb2.Generation:
    """Return a request with a field that is not served, as `n = 4` would be."""
    message = asked("once")
    message.settings.MergeFromString(b"\x98\x06\x04")
    return message


UNKNOWN_IDS = {
    "stops": (
        asked("once", stops=stop_at(2**31, BEYOND)),
        {"settings.stops[0].token_id", "settings.stops[1].token_id"},
    ),
    "prompt": (asked([BEYOND]), {"token_ids.ids[0]"}),
    "bias": (asked("once", logit_bias={BEYOND: 1.0}), {f"settings.logit_bias[{BEYOND}]"}),
    "allowed": (asked("once", allowed_token_ids=[BEYOND]), {"settings.allowed_token_ids"}),
    "banned": (asked("once", banned_token_ids=[1, BEYOND]), {"settings.banned_token_ids"}),
    "end": (asked("once", eos_token_id=BEYOND), {"settings.eos_token_id"}),
}


@pytest.mark.parametrize(("message", "fields"), UNKNOWN_IDS.values(), ids=UNKNOWN_IDS.keys())
@pytest.mark.asyncio
async def test_b30_every_id_beyond_the_vocabulary_is_refused_where_it_stands(message, fields):
    """B30: it passes the wire and hits an assertion of the engine. Every list of ids there is."""
    async with beside_a_control(staged(HashLaw())) as server:
        error = await refused(server, message)
    assert INVALID == error.code()
    told = violations_of(error)
    assert fields == set(told)
    assert all(str(BEYOND) in each or str(2**31) in each for each in told.values())


TOO_MUCH = {
    "logprobs": (asked("once", logprobs=10**6), {"settings.logprobs"}),
    "prompt_logprobs": (asked("once", prompt_logprobs=10**6), {"settings.prompt_logprobs"}),
    "minimum": (asked("once", min_new_tokens=9, max_new_tokens=8), {"settings.min_new_tokens"}),
    "stops": (asked("once", stops=stop_at(*["x"] * 10**5)), {"settings.stops"}),
}


@pytest.mark.parametrize(("message", "fields"), TOO_MUCH.values(), ids=TOO_MUCH.keys())
@pytest.mark.asyncio
async def test_b30_too_much_and_contradictions_are_refused(message, fields):
    """B30: a million alternatives, a minimum above the maximum, a hundred thousand stops."""
    async with beside_a_control(staged(HashLaw())) as server:
        error = await refused(server, message)
    assert INVALID == error.code()
    assert fields == set(violations_of(error))


@pytest.mark.asyncio
async def test_b30_a_field_that_is_not_served_is_never_dropped():
    """B30: several outputs of one request do not exist here; asking for them is UNIMPLEMENTED."""
    async with beside_a_control(staged(HashLaw())) as server:
        error = await refused(server, with_field_beyond_the_contract())
    assert grpc.StatusCode.UNIMPLEMENTED == error.code()
    assert "[99]" in error.details()
