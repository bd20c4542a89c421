import asyncio
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from grpc import aio

from outrider.v1 import statistics_pb2
from outrider.v1.generation_service_pb2 import CompleteRequest, StreamGenerateRequest
from outrider.v1.scheduler_service_pb2 import (
    GetLoadRequest,
    GetStatisticsRequest,
    WatchStatisticsRequest,
    WatchStatisticsResponse,
)
from service.rpc.scheduler_service import DEFAULT_WATCH_SECONDS, SchedulerService
from tests.service.rpc.harness import Gate, generation, gone, loaded, served

pytestmark = pytest.mark.asyncio


async def test_statistics_count_what_was_served():
    request = CompleteRequest(generation=generation(max_new_tokens=20))
    async with served() as server:
        sent = (await server.generation.Complete(request)).finished.statistics
        await gone(server)
        response = await server.scheduler.GetStatistics(GetStatisticsRequest())
    statistics = response.statistics
    assert (1, 20, sent.rounds, sent.draft_tokens, sent.accepted_tokens) == (
        statistics.completed_requests,
        statistics.emitted_tokens,
        statistics.rounds,
        statistics.draft_tokens,
        statistics.accepted_tokens,
    )


async def test_options_are_told():
    async with served() as server:
        options = (await server.scheduler.GetStatistics(GetStatisticsRequest())).options
    quarantine = statistics_pb2.COMPLETION_CANCELLATION_QUARANTINE_UNTIL_COMPLETE
    assert (1, 30_000, quarantine) == (
        options.max_in_flight_verifications,
        options.completion_timeout_milliseconds,
        options.completion_cancellation,
    )


async def test_load_shows_what_is_held():
    gate = Gate()
    async with served(loaded(gate=gate)) as server:
        idle = await server.scheduler.GetLoad(GetLoadRequest())
        call = server.generation.StreamGenerate(StreamGenerateRequest(generation=generation()))
        with gate.closed():
            await call.read()
            call.cancel()
    assert (0, 8, 0, 256, 0) == (
        idle.active_lanes,
        idle.max_lanes,
        idle.queued_requests,
        idle.max_queued_requests,
        idle.kv_cache_tokens,
    )
    assert 8 * 128 == idle.max_kv_cache_tokens


async def test_unknown_model_is_not_found():
    async with served() as server:
        with pytest.raises(aio.AioRpcError) as caught:
            await server.scheduler.GetLoad(GetLoadRequest(model="nobody"))
    assert grpc.StatusCode.NOT_FOUND == caught.value.code()


async def test_watch_sends_at_once_and_again_until_the_client_leaves():
    request = WatchStatisticsRequest(interval=Duration(nanos=100_000_000))
    async with served() as server:
        call = server.scheduler.WatchStatistics(request)
        received = [await call.read() for _ in range(2)]
        call.cancel()
    assert [WatchStatisticsResponse] * 2 == [type(response) for response in received]


async def test_watch_faster_than_its_limit_is_refused():
    async with served() as server:
        call = server.scheduler.WatchStatistics(WatchStatisticsRequest(interval=Duration(nanos=1)))
        with pytest.raises(aio.AioRpcError) as caught:
            await call.read()
    assert grpc.StatusCode.INVALID_ARGUMENT == caught.value.code()
    assert "interval" in caught.value.details()


class RecordingContext:
    """Takes what a handler writes."""

    def __init__(self) -> None:
        self.written: list[Any] = []

    async def write(self, message: Any) -> None:
        self.written.append(message)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (WatchStatisticsRequest(), DEFAULT_WATCH_SECONDS),
        (WatchStatisticsRequest(interval=Duration(seconds=2, nanos=500_000_000)), 2.5),
    ],
)
async def test_watch_waits_for_its_interval_between_messages(
    request_: WatchStatisticsRequest, expected: float
):
    waits: list[float] = []

    async def leave_after_three(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            raise asyncio.CancelledError

    context = RecordingContext()
    async with served() as server:
        service = SchedulerService(server.runtime, leave_after_three)
        with pytest.raises(asyncio.CancelledError):
            await service.WatchStatistics(request_, context)
    assert ([expected] * 3, 3) == (waits, len(context.written))
