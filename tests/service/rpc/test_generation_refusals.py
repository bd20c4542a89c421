"""What the unary call refuses, and how it says so."""

import asyncio

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc import aio
from grpc_status import rpc_status

from engines.scripted.law import HashLaw
from engines.scripted.model import ScriptedSettings
from outrider.v1 import generation_pb2, settings_pb2
from outrider.v1.generation_service_pb2 import (
    CompleteRequest,
    GenerateRequest,
    StreamGenerateRequest,
)
from service.runtime.runtime import RuntimeOptions
from service.text.stops import MAX_STOPS
from tests.service.rpc.harness import (
    Gate,
    Served,
    complete,
    generation,
    loaded,
    served,
)

pytestmark = pytest.mark.asyncio

NONE = settings_pb2.SpeculationSettings(mode=settings_pb2.SPECULATION_MODE_NONE)
CONTEXT = 128


async def refusal(server: Served, message: generation_pb2.Generation) -> aio.AioRpcError:
    with pytest.raises(aio.AioRpcError) as caught:
        await complete(server, message)
    return caught.value


def violated(error: aio.AioRpcError) -> dict[str, str]:
    """Return the violations of a BadRequest by field."""
    bad = error_details_pb2.BadRequest()
    for detail in rpc_status.from_call(error).details:
        detail.Unpack(bad)
    return {violation.field: violation.description for violation in bad.field_violations}


@pytest.mark.parametrize("mode", [settings_pb2.SPECULATION_MODE_AUTO, NONE.mode])
@pytest.mark.parametrize("count", [0, -1])
async def test_budget_without_tokens_is_refused(count: int, mode: int):
    """Case B18: with speculation and without."""
    message = generation(max_new_tokens=count)
    message.speculation.mode = mode
    async with served() as server:
        error = await refusal(server, message)
    assert grpc.StatusCode.INVALID_ARGUMENT == error.code()
    assert {"generation.settings.max_new_tokens"} == set(violated(error))


@pytest.mark.parametrize("length", [128, 129])
async def test_prompt_beyond_the_window_is_refused(length: int):
    """Case B24: both numbers are in the message, and the next request is served."""
    async with served() as server:
        error = await refusal(server, generation("a" * length))
        after = await complete(server, generation(max_new_tokens=1))
    assert grpc.StatusCode.INVALID_ARGUMENT == error.code()
    assert {"generation.text"} == set(violated(error))
    assert str(length) in error.details()
    assert str(CONTEXT) in error.details()
    assert 1 == len(after.tokens.token_ids)


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (generation_pb2.Generation(text=""), "generation.text"),
        (
            generation_pb2.Generation(token_ids=generation_pb2.TokenIds()),
            "generation.token_ids.ids",
        ),
    ],
)
async def test_empty_prompt_is_refused(message: generation_pb2.Generation, field: str):
    """Case B24."""
    async with served() as server:
        error = await refusal(server, message)
    assert grpc.StatusCode.INVALID_ARGUMENT == error.code()
    assert {field} == set(violated(error))


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        (
            generation(stops=[settings_pb2.Stop(token_id=t) for t in (2**31, 261)]),
            {
                "generation.settings.stops[0].token_id",
                "generation.settings.stops[1].token_id",
            },
        ),
        (
            generation_pb2.Generation(token_ids=generation_pb2.TokenIds(ids=[0, 261])),
            {"generation.token_ids.ids[1]"},
        ),
        (generation(eos_token_id=261), {"generation.settings.eos_token_id"}),
        (generation(logit_bias={261: 1.0}), {"generation.settings.logit_bias[261]"}),
        (generation(allowed_token_ids=[0, 261]), {"generation.settings.allowed_token_ids"}),
        (generation(banned_token_ids=[2**32 - 1]), {"generation.settings.banned_token_ids"}),
        (generation(logprobs=10**6), {"generation.settings.logprobs"}),
        (
            generation(min_new_tokens=9, max_new_tokens=8),
            {"generation.settings.min_new_tokens"},
        ),
        (generation(min_new_tokens=257), {"generation.settings.min_new_tokens"}),
        (generation(max_context=129), {"generation.settings.max_context"}),
        (
            generation(stops=[settings_pb2.Stop(text="x")] * 100_000),
            {"generation.settings.stops"},
        ),
    ],
)
async def test_what_the_model_cannot_have_is_refused(
    message: generation_pb2.Generation, fields: set[str]
):
    """Case B30: named by path, while another request is undisturbed."""
    gate = Gate()
    async with served(loaded(gate=gate)) as server:
        with gate.closed():
            control = server.generation.Complete(
                CompleteRequest(generation=generation(max_new_tokens=20))
            )
            error = await refusal(server, message)
        undisturbed = await control
    assert grpc.StatusCode.INVALID_ARGUMENT == error.code()
    assert fields == set(violated(error))
    assert 20 == len(undisturbed.tokens.token_ids)


@pytest.mark.parametrize("stops", [[""], ["a", ""]])
async def test_empty_stop_is_refused_while_another_stream_runs(stops: list[str]):
    """Case B22: by path; the other stream finishes."""
    gate = Gate()
    message = generation(stops=[settings_pb2.Stop(text=stop) for stop in stops])
    async with served(loaded(gate=gate)) as server:
        with gate.closed():
            control = server.generation.Complete(
                CompleteRequest(generation=generation(max_new_tokens=20))
            )
            error = await refusal(server, message)
        undisturbed = await control
    assert grpc.StatusCode.INVALID_ARGUMENT == error.code()
    assert {f"generation.settings.stops[{len(stops) - 1}].text"} == set(violated(error))
    assert 20 == len(undisturbed.tokens.token_ids)


async def test_many_violations_reach_the_client():
    """All of a long list would cost the client the whole status, or hide other fields."""
    async with served() as server:
        error = await refusal(server, generation(stops=[settings_pb2.Stop(text="")] * MAX_STOPS))
    fields = violated(error)
    assert grpc.StatusCode.INVALID_ARGUMENT == error.code()
    assert "must not be empty" == fields["generation.settings.stops[0].text"]
    assert "holds more like these" == fields["generation.settings.stops"]


async def test_unserved_field_is_unimplemented_by_name():
    """Case B30: never dropped silently."""
    message = generation()
    message.priority = 1
    async with served() as server:
        error = await refusal(server, message)
    assert grpc.StatusCode.UNIMPLEMENTED == error.code()
    assert {"generation.priority"} == set(violated(error))


async def test_unknown_model_is_not_found():
    message = generation()
    message.model = "nobody"
    async with served() as server:
        error = await refusal(server, message)
    assert grpc.StatusCode.NOT_FOUND == error.code()
    assert "'nobody'" in error.details()
    assert "scripted" in error.details()


async def test_unknown_proposer_is_not_found():
    message = generation()
    message.speculation.proposer = "nobody"
    async with served() as server:
        error = await refusal(server, message)
    assert grpc.StatusCode.NOT_FOUND == error.code()


async def test_mode_that_is_not_ready_is_a_failed_precondition():
    message = generation()
    message.speculation.mode = settings_pb2.SPECULATION_MODE_MTP
    async with served() as server:
        error = await refusal(server, message)
    assert grpc.StatusCode.FAILED_PRECONDITION == error.code()


async def test_unknown_method_is_unimplemented():
    async with served() as server:
        with pytest.raises(aio.AioRpcError) as caught:
            await server.channel.unary_unary("/outrider.v1.GenerationService/Nothing")(b"")
    assert grpc.StatusCode.UNIMPLEMENTED == caught.value.code()


async def test_full_queue_says_when_to_retry():
    """One slot and one place to wait: of three requests at least one is refused."""
    gate = Gate()
    model = loaded(ScriptedSettings(law=HashLaw(), max_slots=1), gate)
    async with served(model, RuntimeOptions(max_queued_requests=1)) as server:
        with gate.closed():
            request = StreamGenerateRequest(generation=generation())
            calls = [server.generation.StreamGenerate(request) for _ in range(3)]
            firsts = await asyncio.gather(*(c.read() for c in calls), return_exceptions=True)
            for call in calls:
                call.cancel()
    error = next(first for first in firsts if isinstance(first, aio.AioRpcError))
    assert grpc.StatusCode.RESOURCE_EXHAUSTED == error.code()
    pushback = [v for k, v in error.trailing_metadata() if k == "grpc-retry-pushback-ms"]
    assert [True] == [0 < int(value) for value in pushback]
    details = rpc_status.from_call(error).details
    for wanted in (error_details_pb2.RetryInfo(), error_details_pb2.QuotaFailure()):
        assert any(detail.Unpack(wanted) for detail in details)


async def test_a_bad_value_does_not_hide_an_id_that_the_model_lacks():
    """Whichever step finds it, every field at fault is named at once."""
    message = generation(
        top_p=2.0,
        max_new_tokens=0,
        banned_token_ids=[261],
        logit_bias={261: 1.0},
        dry=settings_pb2.DrySettings(base=0.5),
        stops=[settings_pb2.Stop(token_id=261)],
    )
    message.token_ids.ids.extend([0, 261])
    message.speculation.mode = 99
    async with served() as server:
        whole = await refusal(server, message)
        streamed = await failed_start(server, message)
    fields = {
        "settings.top_p",
        "settings.max_new_tokens",
        "settings.banned_token_ids",
        "settings.logit_bias[261]",
        "settings.dry.base",
        "settings.stops[0].token_id",
        "token_ids.ids[1]",
        "speculation.mode",
    }
    assert {f"generation.{field}" for field in fields} == set(violated(whole))
    assert {f"start.{field}" for field in fields} == streamed


async def failed_start(server: Served, message: generation_pb2.Generation) -> set[str]:
    """Return the fields that a request on a stream is refused for."""
    call = server.generation.Generate()
    await call.write(GenerateRequest(request_id="a", start=message))
    await call.done_writing()
    failed = (await call.read()).failed
    bad = error_details_pb2.BadRequest()
    assert any(detail.Unpack(bad) for detail in failed.details)
    return {violation.field for violation in bad.field_violations}
