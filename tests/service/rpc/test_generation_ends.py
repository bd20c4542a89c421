"""How a generation ends before its time: timeouts, deadlines, and clients that go away."""

import asyncio
import sys
from pathlib import Path

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from grpc import aio

from outrider.v1.generation_service_pb2 import CompleteRequest, StreamGenerateRequest
from tests.service.rpc.harness import (
    Gate,
    ManualTime,
    complete,
    exhausted,
    generation,
    gone,
    loaded,
    served,
    until,
)

pytestmark = pytest.mark.asyncio

CLIENT = Path(__file__).parents[3] / "clients/python"


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
