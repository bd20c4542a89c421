"""Health v1 for every service: serving only while the runtime takes requests."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from grpc_health.v1.health import aio as health_aio
from grpc_health.v1.health_pb2 import HealthCheckResponse

WHOLE_SERVER = ""


class Health:
    """The health of a server and of each of its services; not serving until told otherwise."""

    def __init__(self, services: Sequence[str]) -> None:
        self.servicer = health_aio.HealthServicer()
        self._names = (WHOLE_SERVER, *services)
        self._updates: set[asyncio.Task[None]] = set()

    async def set_serving(self, *, serving: bool) -> None:
        """Tell everyone who checks or watches."""
        status = HealthCheckResponse.SERVING if serving else HealthCheckResponse.NOT_SERVING
        for name in self._names:
            await self.servicer.set(name, status)

    def follow(self, serving: bool) -> None:  # noqa: FBT001 - the runtime's callback
        """Take note of a change from within the event loop."""
        update = asyncio.get_running_loop().create_task(self.set_serving(serving=serving))
        self._updates.add(update)
        update.add_done_callback(self._updates.discard)

    async def drain(self) -> None:
        """Report not serving, for good."""
        await self.servicer.enter_graceful_shutdown()
