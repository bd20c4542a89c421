"""The default model through the whole server: a real client process, and one that is killed."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from grpc import aio

from outrider.v1 import chat_pb2, generation_pb2, settings_pb2
from outrider.v1.generation_service_pb2 import StreamGenerateRequest
from outrider.v1.generation_service_pb2_grpc import GenerationServiceStub
from service.rpc.options import ServerOptions
from service.rpc.server import Server
from service.runtime.models import ModelRegistry
from service.runtime.runtime import Runtime
from tests.model.lanes import MAX_TOKENS

pytestmark = [pytest.mark.model, pytest.mark.asyncio, pytest.mark.timeout(1200)]

CLIENT = Path(__file__).with_name("client_process.py")
AUTO = settings_pb2.SPECULATION_MODE_AUTO
NONE = settings_pb2.SPECULATION_MODE_NONE


@asynccontextmanager
async def served(model) -> AsyncIterator[tuple[Runtime, str]]:
    runtime = Runtime(ModelRegistry([model]))
    server = Server(runtime, ServerOptions(port=0))
    port = await server.start()
    try:
        yield runtime, f"127.0.0.1:{port}"
    finally:
        await server.drain(0.0)


async def streamed(
    stub: GenerationServiceStub, text: str, mode: int = AUTO, began: asyncio.Event | None = None
) -> tuple[int, ...]:
    """Return the tokens of one stream; `began` is set once there are some."""
    generation = generation_pb2.Generation(
        chat=chat_pb2.Chat(messages=[chat_pb2.ChatMessage(role="user", content=text)]),
        settings=settings_pb2.GenerationSettings(max_new_tokens=MAX_TOKENS),
        speculation=settings_pb2.SpeculationSettings(mode=mode),
    )
    tokens: list[int] = []
    async for response in stub.StreamGenerate(StreamGenerateRequest(generation=generation)):
        tokens.extend(response.round.tokens.token_ids)
        if tokens and began is not None:
            began.set()
    return tuple(tokens)


@pytest.mark.parametrize("mode", [NONE, AUTO])
async def test_eight_streams_say_what_the_target_alone_says(model, texts, alone, mode) -> None:
    async with served(model) as (_, address), aio.insecure_channel(address) as channel:
        stub = GenerationServiceStub(channel)
        said = await asyncio.gather(*(streamed(stub, text, mode) for text in texts[:16]))

    assert alone[:16] == tuple(said)


async def test_client_killed_in_a_pass_leaves_the_others_unchanged(model, texts, alone) -> None:
    """Its process gets no chance to say goodbye; its slot is free again for the next one."""
    async with served(model) as (runtime, address), aio.insecure_channel(address) as channel:
        stub = GenerationServiceStub(channel)
        client = await asyncio.create_subprocess_exec(
            sys.executable, str(CLIENT), address, stdout=asyncio.subprocess.PIPE
        )
        assert client.stdout is not None
        assert b"round\n" == await client.stdout.readline()
        began = [asyncio.Event() for _ in range(7)]
        others = [
            asyncio.create_task(streamed(stub, text, began=event))
            for text, event in zip(texts[:7], began, strict=True)
        ]
        await asyncio.gather(*(event.wait() for event in began))
        client.kill()
        await client.wait()
        said = await asyncio.gather(*others)
        after = await streamed(stub, texts[7])
        statistics = runtime.statistics().scheduler

    assert alone[:7] == tuple(said)
    assert alone[7] == after
    assert (1, 0) == (statistics.cancelled_requests, statistics.failed_requests)
