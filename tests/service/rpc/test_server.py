import asyncio
from dataclasses import replace

import grpc
import pytest
from google.protobuf import descriptor_pb2
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2

from engines.scripted.fault import Fault, Operation
from outrider.v1.generation_service_pb2 import CompleteRequest, StreamGenerateRequest
from service.errors import AddressUnavailable, OptionOutOfRange
from service.rpc.options import ServerOptions
from service.rpc.server import SERVICES, Server
from service.runtime.models import ModelRegistry
from service.runtime.runtime import Runtime
from service.speculation.options import SchedulerOptions
from tests.service.rpc.harness import (
    HOST,
    LONG,
    Bidi,
    Gate,
    Served,
    generation,
    kinds,
    loaded,
    served,
    start,
    until,
)

pytestmark = pytest.mark.asyncio

Status = health_pb2.HealthCheckResponse
REFLECTIONS = ("grpc.reflection.v1alpha.ServerReflection", "grpc.reflection.v1.ServerReflection")


async def health(server: Served, service: str = "") -> int:
    stub = health_pb2_grpc.HealthStub(server.channel)
    return (await stub.Check(health_pb2.HealthCheckRequest(service=service))).status


@pytest.mark.parametrize("service", ["", *SERVICES])
async def test_every_service_is_serving_once_started(service: str):
    """Case B61."""
    async with served() as server:
        await until(lambda: server.runtime.is_serving)
        assert Status.SERVING == await health(server, service)


async def test_unknown_service_has_no_health():
    """Case B61."""
    async with served() as server:
        with pytest.raises(aio.AioRpcError) as caught:
            await health(server, "nobody")
    assert grpc.StatusCode.NOT_FOUND == caught.value.code()


class LateRuntime(Runtime):
    """A runtime whose start takes until it is let go."""

    def __init__(self, models: ModelRegistry) -> None:
        super().__init__(models)
        self.may_start = asyncio.Event()

    async def start(self) -> None:
        await self.may_start.wait()
        await super().start()


async def test_server_is_not_serving_until_it_has_started(unused_tcp_port: int):
    """Case B61: it answers while it starts, and says that it does not serve."""
    runtime = LateRuntime(ModelRegistry([loaded()]))
    server = Server(runtime, ServerOptions(port=unused_tcp_port))
    starting = asyncio.create_task(server.start())
    async with aio.insecure_channel(f"{HOST}:{unused_tcp_port}") as channel:
        await channel.channel_ready()
        client = Served(server, runtime, unused_tcp_port, channel)
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        before = (await watch.read()).status
        with pytest.raises(aio.AioRpcError) as refused:
            await client.generation.Complete(CompleteRequest(generation=generation()))
        runtime.may_start.set()
        await starting
        after = (await watch.read()).status
        watch.cancel()
        await server.drain(0.0)
    assert (Status.NOT_SERVING, Status.SERVING) == (before, after)
    assert grpc.StatusCode.UNAVAILABLE == refused.value.code()


async def test_health_watch_sees_the_drain_begin():
    """Case B62: from its first moment, while what runs goes on."""
    gate = Gate()
    async with served(loaded(gate=gate)) as server:
        watch = health_pb2_grpc.HealthStub(server.channel).Watch(health_pb2.HealthCheckRequest())
        assert Status.SERVING == (await watch.read()).status
        with gate.closed():
            running = Bidi(server)
            await running.send(start("a", max_new_tokens=20))
            await running.next()
            draining = asyncio.create_task(server.server.drain(60.0))
            assert Status.NOT_SERVING == (await watch.read()).status
            await running.send(start("b"))
            late = await running.next()
        received = await running.until_terminal("a")
        await draining
    assert grpc.StatusCode.UNAVAILABLE.value[0] == late.failed.code
    assert "finished" == kinds(received["a"])[-1]


async def test_drain_ends_what_outlives_its_grace():
    """Case B62: unavailable, after what was delivered."""
    async with served(loaded(LONG)) as server:
        request = StreamGenerateRequest(generation=generation(max_new_tokens=8000))
        responses = aiter(server.generation.StreamGenerate(request))
        first = await anext(responses)
        await server.server.drain(0.0)
        with pytest.raises(aio.AioRpcError) as caught:
            async for _ in responses:
                pass
    assert "admitted" == first.WhichOneof("event")
    assert grpc.StatusCode.UNAVAILABLE == caught.value.code()
    assert "draining" in caught.value.details()


async def test_idle_stream_does_not_hold_up_a_drain():
    async with served() as server:
        bidi = Bidi(server)
        await bidi.send(start("a", max_new_tokens=1))
        await bidi.until_terminal("a")
        await server.server.drain(60.0)
        assert grpc.StatusCode.UNAVAILABLE == await bidi.call.code()


async def test_broken_engine_is_not_serving_and_the_server_stays_up():
    """Case B61: an engine whose order of work is unknowable stops; its requests fail."""
    model = loaded()
    async with served(model) as server:
        watch = health_pb2_grpc.HealthStub(server.channel).Watch(health_pb2.HealthCheckRequest())
        assert Status.SERVING == (await watch.read()).status
        model.target.faults.arm(Fault(Operation.OPEN, ZeroDivisionError("/inside")))
        with pytest.raises(aio.AioRpcError) as caught:
            await server.generation.Complete(CompleteRequest(generation=generation()))
        assert Status.NOT_SERVING == (await watch.read()).status
        watch.cancel()
        with pytest.raises(aio.AioRpcError) as later:
            await server.generation.Complete(CompleteRequest(generation=generation()))
    assert [grpc.StatusCode.UNAVAILABLE] * 2 == [caught.value.code(), later.value.code()]
    assert "/inside" not in caught.value.details()


async def test_host_without_an_address_is_not_taken_for_a_port_in_use():
    server = Server(Runtime(ModelRegistry([loaded()])), ServerOptions("no.such.invalid", port=0))
    with pytest.raises(AddressUnavailable) as caught:
        await server.start()
    assert "cannot listen on no.such.invalid:0: the host cannot be resolved" == str(caught.value)


async def test_port_in_use_is_said():
    async with served() as server:
        options = ServerOptions(port=server.port)
        second = Server(Runtime(ModelRegistry([loaded()])), options)
        with pytest.raises(AddressUnavailable, match=f"{HOST}:{server.port}"):
            await second.start()
        assert Status.SERVING == await health(server)


async def test_settings_that_do_not_fit_leave_nothing_listening():
    broken = replace(loaded(), scheduler=SchedulerOptions(max_pass_lanes=0))
    server = Server(Runtime(ModelRegistry([broken])), ServerOptions(port=0))
    with pytest.raises(OptionOutOfRange):
        await server.start()
    assert 0 == server.in_flight


async def reflected(
    server: Served, service: str, request: reflection_pb2.ServerReflectionRequest
) -> reflection_pb2.ServerReflectionResponse:
    call = server.channel.stream_stream(
        f"/{service}/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )()
    await call.write(request)
    response = await call.read()
    await call.done_writing()
    return response


@pytest.mark.parametrize("version", REFLECTIONS)
async def test_reflection_lists_every_service(version: str):
    """Case B60: in both versions."""
    async with served() as server:
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        response = await reflected(server, version, request)
    listed = {service.name for service in response.list_services_response.service}
    assert {*SERVICES, *REFLECTIONS, "grpc.health.v1.Health"} == listed


@pytest.mark.parametrize("version", REFLECTIONS)
@pytest.mark.parametrize("symbol", [*SERVICES, *REFLECTIONS, "grpc.health.v1.Health"])
async def test_reflection_describes_every_service(version: str, symbol: str):
    """Case B60: each with every file that its own file needs."""
    async with served() as server:
        request = reflection_pb2.ServerReflectionRequest(file_containing_symbol=symbol)
        response = await reflected(server, version, request)
    files = [
        descriptor_pb2.FileDescriptorProto.FromString(file)
        for file in response.file_descriptor_response.file_descriptor_proto
    ]
    described = {f"{file.package}.{each.name}" for file in files for each in file.service}
    assert symbol in described
    names = {file.name for file in files}
    assert all(names.issuperset(file.dependency) for file in files)


@pytest.mark.parametrize("version", REFLECTIONS)
async def test_reflection_serves_files_by_name(version: str):
    async with served() as server:
        request = reflection_pb2.ServerReflectionRequest(
            file_by_filename="outrider/v1/settings.proto"
        )
        response = await reflected(server, version, request)
    (file,) = response.file_descriptor_response.file_descriptor_proto
    assert "outrider.v1" == descriptor_pb2.FileDescriptorProto.FromString(file).package


async def test_reflection_finds_methods_and_says_what_it_does_not_find():
    found, missing = (
        "outrider.v1.GenerationService.Complete",
        "outrider.v1.GenerationService.Nothing",
    )
    async with served() as server:
        responses = [
            await reflected(
                server,
                REFLECTIONS[1],
                reflection_pb2.ServerReflectionRequest(file_containing_symbol=symbol),
            )
            for symbol in (found, missing)
        ]
    assert ["file_descriptor_response", "error_response"] == [
        response.WhichOneof("message_response") for response in responses
    ]


async def test_reflection_can_be_turned_off():
    """Case B60."""
    async with served(options=ServerOptions(port=0, reflection=False)) as server:
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        with pytest.raises(aio.AioRpcError) as caught:
            await reflected(server, REFLECTIONS[0], request)
    assert grpc.StatusCode.UNIMPLEMENTED == caught.value.code()
