"""The scheduler over gRPC: its statistics once or watched, and how busy it is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from outrider.v1.scheduler_service_pb2 import (
    GetLoadRequest,
    GetLoadResponse,
    GetStatisticsRequest,
    GetStatisticsResponse,
    WatchStatisticsRequest,
    WatchStatisticsResponse,
)
from outrider.v1.scheduler_service_pb2_grpc import SchedulerServiceServicer
from service.rpc.calls import Context
from service.rpc.messages import scheduler_options, scheduler_statistics
from service.rpc.mirror import seconds_of
from service.rpc.validation import validate
from service.runtime.runtime import Runtime

DEFAULT_WATCH_SECONDS = 1.0


class SchedulerService(SchedulerServiceServicer):
    """Shows the snapshots that a runtime's engines publish each turn."""

    def __init__(
        self, runtime: Runtime, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._runtime = runtime
        self._sleep = sleep

    async def GetStatistics(
        self, request: GetStatisticsRequest, context: Context
    ) -> GetStatisticsResponse:
        del context
        validate(request)
        statistics = self._runtime.statistics(request.model)
        return GetStatisticsResponse(
            statistics=scheduler_statistics(statistics.scheduler),
            options=scheduler_options(statistics.options),
        )

    async def WatchStatistics(  # type: ignore[override]  # it writes: a cancel arrives in here
        self, request: WatchStatisticsRequest, context: Context
    ) -> None:
        validate(request)
        given = request.HasField("interval")
        interval = seconds_of(request.interval) if given else DEFAULT_WATCH_SECONDS
        while True:
            statistics = self._runtime.statistics(request.model).scheduler
            response = WatchStatisticsResponse(statistics=scheduler_statistics(statistics))
            await context.write(response)
            await self._sleep(interval)

    async def GetLoad(self, request: GetLoadRequest, context: Context) -> GetLoadResponse:
        del context
        validate(request)
        statistics = self._runtime.statistics(request.model)
        return GetLoadResponse(
            active_lanes=statistics.active_lanes,
            max_lanes=statistics.max_lanes,
            queued_requests=statistics.queued_requests,
            max_queued_requests=statistics.max_queued_requests,
            kv_cache_tokens=statistics.kv_cache_tokens,
            max_kv_cache_tokens=statistics.max_kv_cache_tokens,
        )
