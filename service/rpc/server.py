"""The gRPC server: listens, serves the three services, and drains before it ends."""

from __future__ import annotations

import socket

from grpc import aio
from grpc_health.v1 import health, health_pb2_grpc

from outrider.v1 import generation_service_pb2, model_service_pb2, scheduler_service_pb2
from outrider.v1.generation_service_pb2_grpc import add_GenerationServiceServicer_to_server
from outrider.v1.model_service_pb2_grpc import add_ModelServiceServicer_to_server
from outrider.v1.scheduler_service_pb2_grpc import add_SchedulerServiceServicer_to_server
from service.errors import AddressUnavailable
from service.rpc.calls import CallInterceptor
from service.rpc.generation_service import GenerationService
from service.rpc.health import Health
from service.rpc.model_service import ModelService
from service.rpc.options import ServerOptions, channel_arguments
from service.rpc.reflection import add_reflection
from service.rpc.scheduler_service import SchedulerService
from service.runtime.runtime import Runtime

SERVICES = tuple(
    service.full_name
    for file in (generation_service_pb2, model_service_pb2, scheduler_service_pb2)
    for service in file.DESCRIPTOR.services_by_name.values()
)

# What is left after a drain only watches, and has nothing more to wait for.
_LAST_GRACE_SECONDS = 0.5


class Server:
    """One listening server over a runtime, which it starts, drains and stops."""

    def __init__(self, runtime: Runtime, options: ServerOptions) -> None:
        self._runtime = runtime
        self._options = options
        self._calls = CallInterceptor()
        self._health = Health(SERVICES)
        self._server = aio.server(
            interceptors=(self._calls,),
            options=channel_arguments(options),
            maximum_concurrent_rpcs=options.max_concurrent_calls,
        )
        self._add_services()

    @property
    def in_flight(self) -> int:
        """Return how many calls have not ended, watches included."""
        return self._calls.in_flight

    async def start(self) -> int:
        """Listen, then start the runtime, and return the port.

        Health answers from the first moment, and says serving when it is true.

        Raises:
            AddressUnavailable: the address cannot be bound; nothing was started.
        """
        await self._health.set_serving(serving=False)
        port = self._bind()
        await self._server.start()
        self._runtime.on_serving_change(self._health.follow)
        try:
            await self._runtime.start()
        except BaseException:
            await self._server.stop(None)
            raise
        return port

    async def drain(self, grace_seconds: float) -> None:
        """Say not serving at once, let live requests end within the grace, and stop."""
        await self._health.drain()
        await self._runtime.drain(grace_seconds)
        await self._server.stop(_LAST_GRACE_SECONDS)
        await self._runtime.stop()

    def _bind(self) -> int:
        try:
            return self._server.add_insecure_port(self._options.address)
        except RuntimeError as error:
            reason = _why_unavailable(self._options.host)
            raise AddressUnavailable(self._options.address, reason) from error

    def _add_services(self) -> None:
        server, limit = self._server, self._options.max_message_bytes
        add_GenerationServiceServicer_to_server(GenerationService(self._runtime), server)
        add_ModelServiceServicer_to_server(ModelService(self._runtime, limit), server)
        add_SchedulerServiceServicer_to_server(SchedulerService(self._runtime), server)
        health_pb2_grpc.add_HealthServicer_to_server(self._health.servicer, server)
        if self._options.reflection:
            add_reflection(server, (*SERVICES, health.SERVICE_NAME))


def _why_unavailable(host: str) -> str:
    """Say what kept a host from being listened on: gRPC itself tells only that it failed."""
    try:
        socket.getaddrinfo(host, None)
    except (OSError, UnicodeError):
        return "the host cannot be resolved"
    return "the port is in use or not permitted, or the host is not this machine"
