import asyncio
import os
import signal
import socket
from collections.abc import Awaitable, Callable

import grpc
import pytest
from grpc import aio

from outrider.v1.generation_service_pb2 import CompleteRequest, StreamGenerateRequest
from outrider.v1.generation_service_pb2_grpc import GenerationServiceStub
from service.errors import AddressUnavailable
from service.rpc.options import ServerOptions
from service.rpc.serve import run, serve
from service.runtime.models import LoadedModel, ModelRegistry
from service.runtime.runtime import Runtime
from tests.service.rpc.harness import HOST, LONG, Gate, generation, loaded

GRACE = 60.0
Work = Callable[[GenerationServiceStub], Awaitable[None]]


def kill(number: signal.Signals) -> None:
    os.kill(os.getpid(), number)


async def serving(model: LoadedModel, work: Work) -> None:
    """Serve a model until it is drained, with one client at work on it."""
    ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    options = ServerOptions(port=0, drain_grace_seconds=GRACE)
    runtime = Runtime(ModelRegistry([model]))
    server = asyncio.create_task(serve(runtime, options, ready.set_result))
    async with aio.insecure_channel(f"{HOST}:{await ready}") as channel:
        await work(GenerationServiceStub(channel))
        await server


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_an_idle_server(number: signal.Signals):
    async def work(stub: GenerationServiceStub) -> None:
        await stub.Complete(CompleteRequest(generation=generation(max_new_tokens=1)))
        kill(number)

    run(serving(loaded(), work))


def test_signal_lets_what_runs_finish():
    """Case B62."""
    gate = Gate()

    async def work(stub: GenerationServiceStub) -> None:
        with gate.closed():
            request = StreamGenerateRequest(generation=generation(max_new_tokens=20))
            responses = aiter(stub.StreamGenerate(request))
            assert "admitted" == (await anext(responses)).WhichOneof("event")
            kill(signal.SIGTERM)
        last = [response async for response in responses][-1]
        assert 20 == last.finished.usage.completion_tokens

    run(serving(loaded(gate=gate), work))


def test_second_signal_ends_the_wait():
    async def work(stub: GenerationServiceStub) -> None:
        request = StreamGenerateRequest(generation=generation(max_new_tokens=8000))
        responses = aiter(stub.StreamGenerate(request))
        await anext(responses)
        kill(signal.SIGTERM)
        kill(signal.SIGTERM)
        with pytest.raises(aio.AioRpcError) as caught:
            async for _ in responses:
                pass
        assert grpc.StatusCode.UNAVAILABLE == caught.value.code()

    run(serving(loaded(LONG), work))


def test_address_in_use_starts_nothing():
    async def refused() -> None:
        with socket.create_server((HOST, 0)) as taken:
            options = ServerOptions(port=taken.getsockname()[1])
            runtime = Runtime(ModelRegistry([loaded()]))
            with pytest.raises(AddressUnavailable):
                await serve(runtime, options, ports.append)
            assert not runtime.is_serving

    ports: list[int] = []
    run(refused())
    assert not ports


def test_server_ends_where_nobody_hears_that_it_is_ready():
    async def unheard() -> None:
        def fail(_: int) -> None:
            raise BrokenPipeError

        runtime = Runtime(ModelRegistry([loaded()]))
        with pytest.raises(BrokenPipeError):
            await serve(runtime, ServerOptions(port=0), fail)
        assert not runtime.is_serving

    run(unheard())


def test_loop_is_the_fast_one():
    async def loop_type() -> str:
        return type(asyncio.get_running_loop()).__module__

    assert "uvloop" == run(loop_type())
