"""Bytes that are no message, and calls without one: each has its status, and the server goes on."""

import asyncio
from collections.abc import AsyncIterator

import grpc
import pytest
from google.protobuf import descriptor_pool
from google.rpc import error_details_pb2
from grpc import aio
from grpc_health.v1 import health
from grpc_status import rpc_status

from outrider.v1 import generation_pb2
from outrider.v1.generation_service_pb2 import GenerateRequest
from service.errors import MalformedMessage
from service.rpc.reflection import METHOD, V1
from service.rpc.request_stream import RequestStream
from service.rpc.server import SERVICES
from tests.service.rpc.harness import (
    Gate,
    HeldCall,
    complete,
    generation,
    gone,
    kinds,
    loaded,
    served,
    start,
)

pytestmark = pytest.mark.asyncio

GENERATE = "/outrider.v1.GenerationService/Generate"
COMPLETE = "/outrider.v1.GenerationService/Complete"
NO_FIELD = b"\xff"
NO_TEXT = b"\x0a\x01\xff"
"""A first field of text, a request id, whose one byte is no UTF-8."""
TRUNCATED = b"\x0a\x05abc"


def methods() -> list[str]:
    """Return every method that the server serves, as calls name it."""
    pool = descriptor_pool.Default()
    return [
        f"/{service}/{method.name}"
        for service in (*SERVICES, health.SERVICE_NAME)
        for method in pool.FindServiceByName(service).methods
    ] + [f"/{V1}/{METHOD}"]


async def read_out(call: aio.StreamStreamCall) -> None:
    while await call.read() is not aio.EOF:
        pass


async def failure(call: aio.StreamStreamCall) -> tuple[grpc.StatusCode, str]:
    """Read a call to its end, and return how it failed."""
    with pytest.raises(aio.AioRpcError) as caught:
        await read_out(call)
    return caught.value.code(), caught.value.details()


@pytest.mark.parametrize("bad", [NO_FIELD, TRUNCATED])
@pytest.mark.parametrize("method", methods())
async def test_bytes_that_are_no_message_are_refused_by_every_method(method: str, bad: bytes):
    async with served() as server:
        call = server.channel.stream_stream(method)()
        await call.write(bad)
        code, text = await asyncio.wait_for(failure(call), 10)
    assert grpc.StatusCode.INVALID_ARGUMENT == code
    assert "cannot be decoded" in text


ONE_MESSAGE = [method for method in methods() if not method.endswith(("/Generate", METHOD))]


@pytest.mark.parametrize("method", ONE_MESSAGE)
async def test_call_without_its_message_is_refused(method: str):
    async with served() as server:
        call = server.channel.stream_stream(method)()
        await call.done_writing()
        code, text = await asyncio.wait_for(failure(call), 10)
    assert (grpc.StatusCode.INVALID_ARGUMENT, "the call has no message") == (code, text)


async def test_refusal_has_its_reason_as_a_detail():
    async with served() as server:
        with pytest.raises(aio.AioRpcError) as caught:
            await server.channel.unary_unary(COMPLETE)(NO_TEXT)
    status = rpc_status.from_call(caught.value)
    assert status is not None
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    assert "MALFORMED_MESSAGE" == info.reason


@pytest.mark.parametrize("bad", [NO_FIELD, NO_TEXT, TRUNCATED])
async def test_bad_bytes_after_a_good_start_end_the_stream_and_what_runs_on_it(bad: bytes):
    gate = Gate()
    async with served(loaded(gate=gate)) as server:
        call = server.channel.stream_stream(GENERATE)()
        with gate.closed():
            await call.write(start("a", max_new_tokens=100).SerializeToString())
            await call.read()
            await call.write(bad)
        code, text = await asyncio.wait_for(failure(call), 10)
        statistics = await gone(server)
        after = await complete(server, generation(max_new_tokens=3))
    assert grpc.StatusCode.INVALID_ARGUMENT == code
    assert "cannot be decoded" in text
    assert (1, 0, 0) == (
        statistics.cancelled_requests,
        statistics.completed_requests,
        statistics.active_lanes,
    )
    assert 3 == after.finished.usage.completion_tokens


@pytest.mark.parametrize("is_admitted", [True, False])
async def test_reading_that_fails_ends_the_call_only_after_its_answers(is_admitted):
    """A status under a write would never arrive; what is still in preparation is cancelled too."""
    call = HeldCall()
    failed = asyncio.Event()

    async def requests() -> AsyncIterator[GenerateRequest]:
        yield start("a", max_new_tokens=100)
        if is_admitted:
            await call.is_writing.wait()
        failed.set()
        raise MalformedMessage("bad bytes")

    gate = Gate()
    async with served(loaded(gate=gate)) as server:
        with gate.closed():
            running = asyncio.create_task(RequestStream(server.runtime, call).run(requests()))
            await failed.wait()
            await call.is_writing.wait()
            assert not running.done()
            call.is_open.set()
        with pytest.raises(MalformedMessage, match="bad bytes"):
            await running
        await gone(server)
    assert ["admitted", "finished"] == kinds(call.written)
    assert generation_pb2.FINISH_REASON_CANCELLED == call.written[-1].finished.reason
