import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2
from grpc import aio
from grpc_status import rpc_status

from engines.scripted.law import HashLaw, ScriptLaw
from engines.scripted.model import ScriptedSettings
from outrider.v1 import chat_pb2, generation_pb2, settings_pb2
from outrider.v1.generation_service_pb2 import (
    CompleteRequest,
    CompleteResponse,
    StreamGenerateRequest,
    StreamGenerateResponse,
)
from service.rpc.rules import MAX_STOPS
from service.runtime.runtime import RuntimeOptions
from tests.service.rpc.harness import (
    Gate,
    ManualTime,
    Served,
    generation,
    gone,
    loaded,
    served,
    text_of,
    until,
)

pytestmark = pytest.mark.asyncio

NONE = settings_pb2.SpeculationSettings(mode=settings_pb2.SPECULATION_MODE_NONE)
CONTEXT = 128
CLIENT = Path(__file__).parents[3] / "clients/python"


async def complete(server: Served, message: generation_pb2.Generation) -> CompleteResponse:
    return await server.generation.Complete(CompleteRequest(generation=message))


async def stream(
    server: Served, message: generation_pb2.Generation
) -> list[StreamGenerateResponse]:
    return await exhausted(
        server.generation.StreamGenerate(StreamGenerateRequest(generation=message))
    )


async def refusal(server: Served, message: generation_pb2.Generation) -> aio.AioRpcError:
    with pytest.raises(aio.AioRpcError) as caught:
        await complete(server, message)
    return caught.value


async def exhausted(call: AsyncIterator[StreamGenerateResponse]) -> list[StreamGenerateResponse]:
    return [response async for response in call]


def violated(error: aio.AioRpcError) -> dict[str, str]:
    """Return the violations of a BadRequest by field."""
    bad = error_details_pb2.BadRequest()
    for detail in rpc_status.from_call(error).details:
        detail.Unpack(bad)
    return {violation.field: violation.description for violation in bad.field_violations}


async def test_stream_is_admitted_then_rounds_then_finished():
    async with served() as server:
        responses = await stream(server, generation(max_new_tokens=20))
    kinds = [response.WhichOneof("event") for response in responses]
    assert ["admitted", *["round"] * (len(kinds) - 2), "finished"] == kinds
    assert "round" in kinds


async def test_rounds_run_on_without_gaps_and_carry_their_sources():
    async with served() as server:
        responses = await stream(server, generation(max_new_tokens=20))
    rounds = [response.round.tokens for response in responses[1:-1]]
    positions = [0]
    for tokens in rounds:
        assert positions[-1] == tokens.first_position
        assert len(tokens.token_ids) == len(tokens.sources) > 0
        positions.append(positions[-1] + len(tokens.token_ids))
    assert (20, generation_pb2.TOKEN_SOURCE_PREFILL) == (positions[-1], rounds[0].sources[0])


async def test_whole_answer_is_what_the_stream_brings():
    async with served() as server:
        whole = await complete(server, generation(max_new_tokens=20))
        responses = await stream(server, generation(max_new_tokens=20))
    rounds = [response.round for response in responses[1:-1]]
    finished = responses[-1].finished
    streamed = "".join(map(text_of, [*(r.events for r in rounds), finished.events]))
    assert whole.text == streamed
    assert list(whole.tokens.token_ids) == [t for r in rounds for t in r.tokens.token_ids]
    assert whole.finished.reason == finished.reason == generation_pb2.FINISH_REASON_MAX_TOKENS
    assert "finished" == finished.events[-1].WhichOneof("event")
    assert whole.finished.usage == finished.usage


async def test_finished_event_comes_once_and_last():
    async with served() as server:
        responses = await stream(server, generation(max_new_tokens=20))
    events = [
        event.WhichOneof("event")
        for response in responses
        for event in (*response.round.events, *response.finished.events)
    ]
    assert (1, "finished") == (events.count("finished"), events[-1])


@pytest.mark.parametrize("proposer", ["right", "wrong", "mostly-right", "own-law"])
async def test_speculation_changes_no_token(proposer: str):
    speculative = generation(max_new_tokens=60)
    speculative.speculation.proposer = proposer
    plain = generation(max_new_tokens=60)
    plain.speculation.CopyFrom(NONE)
    async with served() as server:
        expected, actual = await complete(server, plain), await complete(server, speculative)
    assert expected.tokens.token_ids == actual.tokens.token_ids
    assert expected.text == actual.text
    assert 0 == expected.finished.statistics.draft_tokens
    assert 0 < actual.finished.statistics.draft_tokens


async def test_admission_echoes_what_was_resolved():
    message = generation(
        temperature=0.5,
        top_k=3,
        seed=0,
        max_new_tokens=5,
        stops=[settings_pb2.Stop(text="#"), settings_pb2.Stop(token_id=7)],
        include_stop=True,
        eos_token_id=9,
        max_context=100,
    )
    message.timeout.CopyFrom(Duration(seconds=60))
    async with served() as server:
        admitted = (await complete(server, message)).admitted
    settings = admitted.settings
    assert (True, 0.5, 3, 1.0) == (
        settings.do_sample,
        settings.temperature,
        settings.top_k,
        settings.top_p,
    )
    assert (0, 5, 100, 9) == (
        settings.seed,
        settings.max_new_tokens,
        settings.max_context,
        settings.eos_token_id,
    )
    assert message.settings.stops == settings.stops
    assert settings.include_stop
    assert ([9], 4, 60) == (
        admitted.eos_token_ids,
        admitted.prompt_tokens,
        admitted.timeout.seconds,
    )
    assert ("right", True) == (admitted.speculation.proposer, admitted.speculation.fixed)


async def test_speculation_off_says_why():
    message = generation(max_new_tokens=2)
    message.speculation.CopyFrom(NONE)
    async with served() as server:
        speculation = (await complete(server, message)).admitted.speculation
    assert settings_pb2.SPECULATION_MODE_NONE == speculation.mode
    assert generation_pb2.SPECULATION_OFF_REASON_REQUESTED == speculation.off_reason
    assert "speculation.mode" in speculation.off_detail


async def test_fresh_seed_is_echoed_and_repeats_the_output():
    async with served() as server:
        first = await complete(server, generation(temperature=1.0, max_new_tokens=30))
        seed = first.admitted.settings.seed
        again = generation(temperature=1.0, max_new_tokens=30, seed=seed)
        again.speculation.num_speculative_tokens = 4
        fixed = [await complete(server, again) for _ in range(2)]
    assert seed == fixed[0].admitted.settings.seed
    assert fixed[0].tokens.token_ids == fixed[1].tokens.token_ids


async def test_chat_is_rendered_and_answered():
    turn = chat_pb2.ChatMessage(role="user", content="hello")
    message = generation_pb2.Generation(chat=chat_pb2.Chat(messages=[turn]))
    message.settings.max_new_tokens = 3
    async with served() as server:
        answer = await complete(server, message)
    # Begin, user, five letters, reply.
    assert (8, 3) == (answer.admitted.prompt_tokens, len(answer.tokens.token_ids))


SCRIPT = ScriptedSettings(law=ScriptLaw(((tuple(b"say"), tuple(b"left END right")),)))


async def test_matched_stop_is_named_and_not_sent():
    stops = [settings_pb2.Stop(text="zzz"), settings_pb2.Stop(text="END")]
    async with served(loaded(SCRIPT)) as server:
        answer = await complete(server, generation("say", stops=stops))
    assert ("left ", 1, "END") == (
        answer.text,
        answer.finished.matched_stop.index,
        answer.finished.matched_stop.text,
    )
    assert generation_pb2.FINISH_REASON_STOP_SEQUENCE == answer.finished.reason


async def test_included_stop_is_sent():
    stops = [settings_pb2.Stop(text="END")]
    async with served(loaded(SCRIPT)) as server:
        answer = await complete(server, generation("say", stops=stops, include_stop=True))
    assert "left END" == answer.text


async def test_stop_token_is_named_and_counts():
    stops = [settings_pb2.Stop(token_id=ord("E"))]
    async with served(loaded(SCRIPT)) as server:
        answer = await complete(server, generation("say", stops=stops))
    stop = answer.finished.matched_stop
    assert (0, "token_id", ord("E")) == (stop.index, stop.WhichOneof("stop"), stop.token_id)
    assert ord("E") == answer.tokens.token_ids[-1]


@pytest.mark.parametrize("count", [1, 2, 3, 16, 17])
async def test_budget_is_met_exactly(count: int):
    """Case B18: tokens, sources and usage agree with what was asked for."""
    async with served() as server:
        answer = await complete(server, generation(max_new_tokens=count))
    assert (count, count, count) == (
        len(answer.tokens.token_ids),
        len(answer.tokens.sources),
        answer.finished.usage.completion_tokens,
    )
    assert generation_pb2.FINISH_REASON_MAX_TOKENS == answer.finished.reason


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


async def test_budget_left_out_is_the_stated_default():
    """Case B18: 256, and never lowered silently: here the context ends the output."""
    async with served() as server:
        answer = await complete(server, generation())
    assert 256 == answer.admitted.settings.max_new_tokens
    assert generation_pb2.FINISH_REASON_CONTEXT_LENGTH == answer.finished.reason
    assert CONTEXT - len("once") == answer.finished.usage.completion_tokens


@pytest.mark.parametrize("mode", [settings_pb2.SPECULATION_MODE_AUTO, NONE.mode])
@pytest.mark.parametrize(
    ("length", "budget", "expected", "reason"),
    [
        (127, None, 1, generation_pb2.FINISH_REASON_CONTEXT_LENGTH),
        (100, 100, 28, generation_pb2.FINISH_REASON_CONTEXT_LENGTH),
        (100, 28, 28, generation_pb2.FINISH_REASON_MAX_TOKENS),
    ],
)
async def test_prompt_near_the_window_gets_what_fits(
    length: int, budget: int | None, expected: int, reason: int, mode: int
):
    """Case B24, with speculation and without."""
    message = generation("a" * length, **({} if budget is None else {"max_new_tokens": budget}))
    message.speculation.mode = mode
    async with served() as server:
        answer = await complete(server, message)
    assert (expected, reason) == (len(answer.tokens.token_ids), answer.finished.reason)


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


@pytest.mark.parametrize("temperature", [1e-6, 1e-46])
async def test_tiny_temperature_is_greedy(temperature: float):
    """Case B29: the greedy output, and the echo says so."""
    async with served() as server:
        greedy = await complete(server, generation(max_new_tokens=20, temperature=0.0))
        tiny = await complete(server, generation(max_new_tokens=20, temperature=temperature))
    assert greedy.tokens.token_ids == tiny.tokens.token_ids
    assert 0.0 == tiny.admitted.settings.temperature


async def test_top_k_beyond_the_vocabulary_is_off():
    """Case B29."""
    async with served() as server:
        answer = await complete(
            server, generation(max_new_tokens=5, temperature=1.0, top_k=2**31 - 1)
        )
    assert 5 == len(answer.tokens.token_ids)


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
    """More than trailers hold would cost the client the whole status."""
    async with served() as server:
        error = await refusal(server, generation(stops=[settings_pb2.Stop(text="")] * MAX_STOPS))
    fields = violated(error)
    assert grpc.StatusCode.INVALID_ARGUMENT == error.code()
    assert "must not be empty" == fields["generation.settings.stops[0].text"]
    assert "more like it" in list(fields.values())[-1]


async def test_unserved_field_is_unimplemented_by_name():
    """Case B30: never dropped silently."""
    async with served() as server:
        error = await refusal(server, generation(logprobs=10**6, min_new_tokens=9))
    assert grpc.StatusCode.UNIMPLEMENTED == error.code()
    expected = {"generation.settings.logprobs", "generation.settings.min_new_tokens"}
    assert expected == set(violated(error))


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


async def test_own_timeout_ends_the_request_after_what_was_delivered():
    gate, clock = Gate(), ManualTime()
    message = generation(max_new_tokens=100)
    message.timeout.CopyFrom(Duration(seconds=60))
    async with served(loaded(gate=gate), clock=clock) as server:
        with gate.closed():
            request = StreamGenerateRequest(generation=message)
            responses = aiter(server.generation.StreamGenerate(request))
            first = await anext(responses)
            clock.now = 61.0
        with pytest.raises(aio.AioRpcError) as caught:
            await exhausted(responses)
        statistics = await gone(server)
    assert "admitted" == first.WhichOneof("event")
    assert grpc.StatusCode.DEADLINE_EXCEEDED == caught.value.code()
    assert (0, 1) == (statistics.active_lanes, statistics.failed_requests)


async def test_deadline_of_the_call_is_the_requests_own():
    """A deadline reaches the engine, not only the client."""
    gate = Gate()
    request = StreamGenerateRequest(generation=generation(max_new_tokens=100))
    async with served(loaded(gate=gate)) as server:
        with gate.closed():
            call = server.generation.StreamGenerate(request, timeout=0.05)
            admitted = await call.read()
            assert grpc.StatusCode.DEADLINE_EXCEEDED == await call.code()
        assert 0 < admitted.admitted.timeout.nanos <= 50_000_000
        statistics = await gone(server)
    assert 0 == statistics.completed_requests


async def test_client_that_leaves_mid_stream_frees_its_slot_within_a_pass():
    """Case B52: nothing more is decoded for it than the pass in flight."""
    model = loaded()
    async with served(model) as server:
        call = server.generation.StreamGenerate(StreamGenerateRequest(generation=generation()))
        await call.read()
        call.cancel()
        statistics = await gone(server)
        after = await complete(server, generation(max_new_tokens=20))
    assert 0 == statistics.active_lanes
    assert 20 == len(after.tokens.token_ids)


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
    retry = error_details_pb2.RetryInfo()
    assert any(detail.Unpack(retry) for detail in rpc_status.from_call(error).details)


READER = """
import sys
import grpc
from outrider.v1.generation_pb2 import Generation
from outrider.v1.generation_service_pb2 import StreamGenerateRequest
from outrider.v1.generation_service_pb2_grpc import GenerationServiceStub

stub = GenerationServiceStub(grpc.insecure_channel(sys.argv[1]))
request = StreamGenerateRequest(generation=Generation(text="once"))
for response in stub.StreamGenerate(request):
    print(response.WhichOneof("event"), flush=True)
"""


async def test_client_killed_mid_stream_leaves_the_others_unchanged():
    """Case B52: a process that ends without a word cancels what it asked for."""
    gate = Gate()
    async with served(loaded(gate=gate)) as server:
        expected = await complete(server, generation("other", max_new_tokens=20))
        with gate.closed():
            other = server.generation.Complete(
                CompleteRequest(generation=generation("other", max_new_tokens=20))
            )
            reader = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-c", READER, server.address),
                cwd=CLIENT,
                stdout=asyncio.subprocess.PIPE,
            )
            assert reader.stdout is not None
            assert b"admitted\n" == await reader.stdout.readline()
            reader.kill()
            await reader.wait()
            await until(lambda: server.server.in_flight == 1)
        undisturbed = await other
        statistics = await gone(server)
    assert expected.tokens == undisturbed.tokens
    assert (1, 2) == (statistics.cancelled_requests, statistics.completed_requests)
