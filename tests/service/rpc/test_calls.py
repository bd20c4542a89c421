import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
import pytest
from grpc import aio

from service.errors import UnknownModel
from service.rpc.calls import CallInterceptor, caller_of
from tests.service.rpc.harness import HOST, until

pytestmark = pytest.mark.asyncio

SERVICE = "test.Calls"
PROMPT = b"what the prompt said"


class Context:
    """What `caller_of` looks at."""

    def __init__(self, metadata: tuple[tuple[str, str], ...]) -> None:
        self._metadata = metadata

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return self._metadata

    def peer(self) -> str:
        return "ipv4:127.0.0.1:4242"


async def unary(request, context):
    return request


async def generator(request, context) -> AsyncIterator[bytes]:
    yield request
    yield request


async def writer(request, context) -> None:
    await context.write(request)
    await context.write(request)


async def gather(requests, context):
    return b"".join([request async for request in requests])


async def echo(requests, context) -> AsyncIterator[bytes]:
    async for request in requests:
        yield request


async def fail(request, context):
    raise ValueError(request)


async def fail_later(request, context) -> AsyncIterator[bytes]:
    yield request
    raise UnknownModel("m", ("a",))


async def wait(request, context) -> None:
    await context.write(request)
    await asyncio.Event().wait()


HANDLERS = {
    "unary": grpc.unary_unary_rpc_method_handler(unary),
    "generator": grpc.unary_stream_rpc_method_handler(generator),
    "writer": grpc.unary_stream_rpc_method_handler(writer),
    "gather": grpc.stream_unary_rpc_method_handler(gather),
    "echo": grpc.stream_stream_rpc_method_handler(echo),
    "fail": grpc.unary_unary_rpc_method_handler(fail),
    "fail_later": grpc.unary_stream_rpc_method_handler(fail_later),
    "wait": grpc.unary_stream_rpc_method_handler(wait),
}


@asynccontextmanager
async def intercepted() -> AsyncIterator[tuple[aio.Channel, CallInterceptor]]:
    interceptor = CallInterceptor()
    server = aio.server(interceptors=(interceptor,))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, HANDLERS),))
    port = server.add_insecure_port(f"{HOST}:0")
    await server.start()
    async with aio.insecure_channel(f"{HOST}:{port}") as channel:
        yield channel, interceptor
    await server.stop(None)


async def test_all_four_kinds_of_handlers_work_behind_it():
    async with intercepted() as (channel, interceptor):
        one = await channel.unary_unary(f"/{SERVICE}/unary")(b"a")
        by_yield = [r async for r in channel.unary_stream(f"/{SERVICE}/generator")(b"b")]
        by_write = [r async for r in channel.unary_stream(f"/{SERVICE}/writer")(b"c")]
        many = await channel.stream_unary(f"/{SERVICE}/gather")(iter([b"d", b"e"]))
        both = [r async for r in channel.stream_stream(f"/{SERVICE}/echo")(iter([b"f", b"g"]))]
        await until(lambda: interceptor.in_flight == 0)
    assert (b"a", [b"b"] * 2, [b"c"] * 2, b"de", [b"f", b"g"]) == (
        one,
        by_yield,
        by_write,
        many,
        both,
    )


async def test_unknown_failure_is_internal_and_logged_only_here(caplog: pytest.LogCaptureFixture):
    async with intercepted() as (channel, _):
        with pytest.raises(aio.AioRpcError) as caught:
            await channel.unary_unary(f"/{SERVICE}/fail")(PROMPT)
    assert grpc.StatusCode.INTERNAL == caught.value.code()
    assert PROMPT.decode() not in str(caught.value)
    assert ["ERROR"] == [record.levelname for record in caplog.records if record.exc_info]


async def test_named_failure_after_a_message_keeps_its_status():
    async with intercepted() as (channel, _):
        call = channel.unary_stream(f"/{SERVICE}/fail_later")(b"a")
        assert b"a" == await call.read()
        assert grpc.StatusCode.NOT_FOUND == await call.code()


async def test_each_call_leaves_one_line_without_its_content(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "outrider.rpc")
    async with intercepted() as (channel, interceptor):
        await channel.unary_unary(f"/{SERVICE}/unary")(PROMPT)
        call = channel.unary_stream(f"/{SERVICE}/fail_later")(PROMPT)
        await call.read()
        await call.code()
        await until(lambda: interceptor.in_flight == 0)
    lines = [record.getMessage() for record in caplog.records]
    assert ["method=/test.Calls/unary code=OK", "method=/test.Calls/fail_later code=NOT_FOUND"] == [
        line.rpartition(" ")[0] for line in lines
    ]
    assert PROMPT.decode() not in "".join(lines)


async def test_cancelled_call_ends_its_handler(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "outrider.rpc")
    async with intercepted() as (channel, interceptor):
        call = channel.unary_stream(f"/{SERVICE}/wait")(b"a")
        await call.read()
        assert 1 == interceptor.in_flight
        call.cancel()
        await until(lambda: interceptor.in_flight == 0)
    assert "code=CANCELLED" in caplog.records[-1].getMessage()


async def test_caller_is_the_connection_without_a_token():
    assert "ipv4:127.0.0.1:4242" == caller_of(Context(()))


async def test_caller_is_the_token_and_keeps_it_secret():
    first = caller_of(Context((("authorization", "Bearer first"),)))
    second = caller_of(Context((("authorization", "Bearer second"),)))
    assert first == caller_of(Context((("authorization", "Bearer first"),)))
    assert first != second
    assert "first" not in first
