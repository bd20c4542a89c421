import asyncio

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2
from grpc import aio

from engines.scripted.fault import Fault, Operation
from outrider.v1 import generation_pb2, settings_pb2
from outrider.v1.generation_service_pb2 import (
    CompleteRequest,
    GenerateRequest,
    GenerateResponse,
)
from service.errors import EngineError
from service.rpc.options import ServerOptions
from service.runtime.runtime import RuntimeOptions
from tests.service.rpc.harness import (
    LONG,
    Bidi,
    Gate,
    ManualTime,
    Served,
    cancel,
    generation,
    gone,
    kinds,
    loaded,
    served,
    start,
    tokens_of,
    until,
)

pytestmark = pytest.mark.asyncio

EIGHT = tuple(f"request-{number}" for number in range(8))
BUDGET = 40


async def alone(server: Served, text: str) -> list[int]:
    request = CompleteRequest(generation=generation(text, max_new_tokens=BUDGET))
    return list((await server.generation.Complete(request)).tokens.token_ids)


def failure(response: GenerateResponse) -> tuple[grpc.StatusCode, list[str]]:
    """Return a failed response's code, and the fields that it names."""
    bad = error_details_pb2.BadRequest()
    for detail in response.failed.details:
        detail.Unpack(bad)
    code = next(c for c in grpc.StatusCode if c.value[0] == response.failed.code)
    return code, [violation.field for violation in bad.field_violations]


async def test_eight_requests_on_one_stream_each_get_their_own_output():
    async with served() as server:
        expected = {name: await alone(server, name) for name in EIGHT}
        bidi = Bidi(server)
        await bidi.send(*(start(name, name, max_new_tokens=BUDGET) for name in EIGHT))
        received = await bidi.until_terminal(*EIGHT)
        await bidi.call.done_writing()
        assert aio.EOF is await bidi.call.read()
        assert grpc.StatusCode.OK == await bidi.call.code()
    assert expected == {name: tokens_of(received[name]) for name in EIGHT}
    for name in EIGHT:
        rounds = len(received[name]) - 2
        assert ["admitted", *["round"] * rounds, "finished"] == kinds(received[name])


async def test_answers_of_different_requests_interleave():
    """All eight hold a slot at once, so no request waits for another to end."""
    gate = Gate()
    async with served(loaded(gate=gate)) as server:
        bidi = Bidi(server)
        with gate.closed():
            await bidi.send(*(start(name, name, max_new_tokens=BUDGET) for name in EIGHT))
            admitted = [(await bidi.next()).WhichOneof("event") for _ in EIGHT]
        received = await bidi.until_terminal(*EIGHT)
        bidi.call.cancel()
        passes = server.runtime.statistics().scheduler
    assert ["admitted"] * 8 == admitted
    assert passes.verified_lanes > passes.verification_passes
    assert set(EIGHT) == set(received)


async def test_one_failing_lane_of_eight_leaves_the_others_alone():
    gate = Gate()
    model = loaded(gate=gate)
    async with served(model) as server:
        expected = {name: await alone(server, name) for name in EIGHT}
        model.target.faults.arm(Fault(Operation.ROWS, EngineError("broken row"), slot=3, nth=2))
        bidi = Bidi(server)
        with gate.closed():
            await bidi.send(*(start(name, name, max_new_tokens=BUDGET) for name in EIGHT))
            for _ in EIGHT:
                await bidi.next()
        received = await bidi.until_terminal(*EIGHT)
        after = await alone(server, "after")
        bidi.call.cancel()
    failed = [name for name in EIGHT if kinds(received[name])[-1] == "failed"]
    assert 1 == len(failed)
    last = received[failed[0]][-1]
    assert (grpc.StatusCode.INTERNAL, []) == failure(last)
    assert "broken row" not in str(last)
    delivered = tokens_of(received[failed[0]])
    assert expected[failed[0]][: len(delivered)] == delivered
    for name in set(EIGHT) - set(failed):
        assert expected[name] == tokens_of(received[name])
    assert BUDGET == len(after)


async def test_closing_the_side_lets_what_runs_go_on():
    async with served() as server:
        expected = await alone(server, "once")
        bidi = Bidi(server)
        await bidi.send(start("a", max_new_tokens=BUDGET))
        await bidi.call.done_writing()
        received = await bidi.until_terminal("a")
        assert aio.EOF is await bidi.call.read()
        assert grpc.StatusCode.OK == await bidi.call.code()
    assert expected == tokens_of(received["a"])


async def test_cancelled_request_ends_cancelled_and_leaves_the_other():
    gate = Gate()
    async with served(loaded(gate=gate)) as server:
        expected = await alone(server, "kept")
        bidi = Bidi(server)
        with gate.closed():
            await bidi.send(
                start("kept", "kept", max_new_tokens=BUDGET),
                start("gone", "gone", max_new_tokens=BUDGET),
            )
            assert {"kept", "gone"} == {(await bidi.next()).request_id for _ in range(2)}
            await bidi.send(cancel("gone"))
            # Answered in order, so the cancellation has been taken.
            await bidi.send(start("mark", text=""))
            assert "mark" == (await bidi.next()).request_id
        received = await bidi.until_terminal("kept", "gone")
        bidi.call.cancel()
    assert expected == tokens_of(received["kept"])
    finished = received["gone"][-1].finished
    assert generation_pb2.FINISH_REASON_CANCELLED == finished.reason
    assert len(tokens_of(received["gone"])) < BUDGET
    assert "finished" == finished.events[-1].WhichOneof("event")


async def test_cancelling_what_is_not_there_is_ignored():
    async with served() as server:
        bidi = Bidi(server)
        await bidi.send(cancel("nobody"), start("a", max_new_tokens=1))
        received = await bidi.until_terminal("a")
        bidi.call.cancel()
    assert {"a"} == set(received)


async def test_live_id_is_refused_and_the_first_goes_on():
    """Case B54."""
    gate = Gate()
    async with served(loaded(gate=gate)) as server:
        expected = await alone(server, "once")
        bidi = Bidi(server)
        with gate.closed():
            await bidi.send(start("a", max_new_tokens=BUDGET))
            assert "admitted" == (await bidi.next()).WhichOneof("event")
            await bidi.send(start("a", "another"))
            second = await bidi.next()
        received = await bidi.until_terminal("a")
        bidi.call.cancel()
    assert (grpc.StatusCode.ALREADY_EXISTS, []) == failure(second)
    assert expected == tokens_of(received["a"])


async def test_id_is_free_once_its_request_has_ended():
    async with served() as server:
        bidi = Bidi(server)
        for _ in range(20):
            await bidi.send(start("a", max_new_tokens=2))
            received = await bidi.until_terminal("a")
            assert "finished" == kinds(received["a"])[-1]
        bidi.call.cancel()


async def test_ids_are_scoped_to_the_connection():
    gate = Gate()
    own_connection = (("grpc.use_local_subchannel_pool", 1),)
    async with (
        served(loaded(gate=gate)) as server,
        aio.insecure_channel(server.address, options=own_connection) as channel,
    ):
        with gate.closed():
            first = Bidi(server)
            second = Bidi(Served(server.server, server.runtime, server.port, channel))
            for bidi in (first, second):
                await bidi.send(start("a", max_new_tokens=2))
                assert "admitted" == (await bidi.next()).WhichOneof("event")
        for bidi in (first, second):
            await bidi.until_terminal("a")
            bidi.call.cancel()


@pytest.mark.parametrize(
    ("request_", "fields"),
    [
        (GenerateRequest(start=generation()), ["request_id"]),
        (GenerateRequest(request_id="a"), ["action"]),
        (start("a", text=""), ["start.text"]),
        (start("a", top_k=-1), ["start.settings.top_k"]),
        (start("a", "a" * 128), ["start.text"]),
        (start("a", stops=[settings_pb2.Stop(token_id=999)]), ["start.settings.stops[0].token_id"]),
    ],
)
async def test_bad_request_fails_alone_by_full_paths(request_: GenerateRequest, fields: list[str]):
    async with served() as server:
        bidi = Bidi(server)
        await bidi.send(request_)
        refused = await bidi.next()
        await bidi.send(start("good", max_new_tokens=1))
        received = await bidi.until_terminal("good")
        bidi.call.cancel()
    assert request_.request_id == refused.request_id
    assert (grpc.StatusCode.INVALID_ARGUMENT, fields) == failure(refused)
    assert "finished" == kinds(received["good"])[-1]


async def test_own_timeout_fails_one_request_of_the_stream():
    gate, clock = Gate(), ManualTime()
    hurried = start("hurried", max_new_tokens=BUDGET)
    hurried.start.timeout.CopyFrom(Duration(seconds=60))
    async with served(loaded(gate=gate), clock=clock) as server:
        expected = await alone(server, "patient")
        bidi = Bidi(server)
        with gate.closed():
            await bidi.send(hurried, start("patient", "patient", max_new_tokens=BUDGET))
            for _ in range(2):
                await bidi.next()
            clock.now = 61.0
        received = await bidi.until_terminal("hurried", "patient")
        bidi.call.cancel()
    assert (grpc.StatusCode.DEADLINE_EXCEEDED, []) == failure(received["hurried"][-1])
    assert expected == tokens_of(received["patient"])


async def test_client_that_breaks_off_cancels_everything_on_the_stream():
    gate = Gate()
    async with served(loaded(gate=gate)) as server:
        bidi = Bidi(server)
        with gate.closed():
            await bidi.send(*(start(name, name, max_new_tokens=BUDGET) for name in EIGHT))
            for _ in EIGHT:
                await bidi.next()
            bidi.call.cancel()
            # The server has seen it when none of these calls is left.
            await until(lambda: server.server.in_flight == 0)
        statistics = await gone(server)
        after = await alone(server, "after")
    assert (0, 8, 0) == (
        statistics.active_lanes,
        statistics.cancelled_requests,
        statistics.completed_requests,
    )
    assert BUDGET == len(after)


NARROW = (
    ("grpc.http2.lookahead_bytes", 16384),
    ("grpc.http2.bdp_probe", 0),
    ("grpc.use_local_subchannel_pool", 1),
)


async def test_slow_reader_is_given_up_and_others_are_not():
    """Its messages are joined while it lags; the engine never waits for it."""
    clock = ManualTime()
    options = RuntimeOptions(max_outbox_messages=2, slow_consumer_seconds=5.0)
    async with (
        served(loaded(LONG), options, clock=clock) as server,
        aio.insecure_channel(server.address, options=NARROW) as channel,
    ):
        expected = await alone(server, "once")
        lazy = Bidi(Served(server.server, server.runtime, server.port, channel))
        await lazy.send(*(start(f"lazy-{n}", max_new_tokens=2000, logprobs=20) for n in range(4)))
        assert expected == await alone(server, "once")
        while server.runtime.statistics().active_lanes:
            clock.now += 1.0
            await asyncio.sleep(0)
        received = await lazy.until_terminal(*(f"lazy-{n}" for n in range(4)))
        lazy.call.cancel()
    codes = {failure(responses[-1])[0] for responses in received.values()}
    assert {grpc.StatusCode.RESOURCE_EXHAUSTED} == codes


async def test_message_beyond_the_limit_is_refused_and_the_connection_kept():
    """Case B57: five megabytes pass, more than the limit does not."""
    options = ServerOptions(port=0, max_message_bytes=8 * 2**20)
    async with served(options=options) as server:
        with pytest.raises(aio.AioRpcError) as big:
            await server.generation.Complete(
                CompleteRequest(generation=generation("a" * (5 * 2**20)))
            )
        with pytest.raises(aio.AioRpcError) as bigger:
            await server.generation.Complete(
                CompleteRequest(generation=generation("a" * (8 * 2**20 + 1)))
            )
        after = await alone(server, "after")
    assert grpc.StatusCode.INVALID_ARGUMENT == big.value.code()
    assert "128" in big.value.details()
    assert grpc.StatusCode.RESOURCE_EXHAUSTED == bigger.value.code()
    assert BUDGET == len(after)
