"""Requests that must be refused, beside one that nothing may disturb."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
from google.rpc import error_details_pb2
from grpc import aio
from grpc_status import rpc_status

from outrider.v1 import generation_pb2
from service.runtime.models import LoadedModel
from tests.cases.asking import asked, output_of
from tests.service.rpc.harness import Served, complete, served

CONTROL = asked("control", "mostly-right", 4, max_new_tokens=60)


@asynccontextmanager
async def beside_a_control(model: LoadedModel) -> AsyncIterator[Served]:
    """Serve a model; another request runs meanwhile and gets what it gets alone."""
    async with served(model) as server:
        alone = await complete(server, CONTROL)
        running = asyncio.create_task(complete(server, CONTROL))
        await asyncio.sleep(0)
        yield server
        assert output_of(alone) == output_of(await running)


async def refused(server: Served, message: generation_pb2.Generation) -> aio.AioRpcError:
    """Return the error of a request that is refused."""
    with pytest.raises(aio.AioRpcError) as caught:
        await complete(server, message)
    return caught.value


def violations_of(error: aio.AioRpcError) -> Mapping[str, str]:
    """Return what is said of each field at fault, by its path inside `Generation`."""
    bad = error_details_pb2.BadRequest()
    for detail in rpc_status.from_call(error).details:
        detail.Unpack(bad)
    return {v.field.removeprefix("generation."): v.description for v in bad.field_violations}
