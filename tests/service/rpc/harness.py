"""A real server on a free port over the scripted engine, held and let go by hand."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from grpc import aio

from engines.scripted.law import HashLaw
from engines.scripted.model import ScriptedSettings, scripted_model
from outrider.v1 import generation_pb2, settings_pb2
from outrider.v1.generation_service_pb2 import (
    CompleteRequest,
    CompleteResponse,
    GenerateRequest,
    GenerateResponse,
    StreamGenerateRequest,
    StreamGenerateResponse,
)
from outrider.v1.generation_service_pb2_grpc import GenerationServiceStub
from outrider.v1.model_service_pb2_grpc import ModelServiceStub
from outrider.v1.scheduler_service_pb2_grpc import SchedulerServiceStub
from service.rpc.options import ServerOptions
from service.rpc.server import Server
from service.runtime.models import LoadedModel, LoadedProposer, ModelRegistry
from service.runtime.request import SpeculationMode
from service.runtime.runtime import Runtime, RuntimeOptions
from service.runtime.text import ModelText
from service.speculation.capability import DraftSource, Ready
from service.speculation.observer import LifecycleStage
from service.speculation.statistics import SchedulerStatistics
from service.text.chat import ChatTemplate
from service.text.dialects.recognition import Recogniser
from service.text.tokenizer import parse_tokenizer

SCRIPTED = ScriptedSettings(law=HashLaw(), max_context=128)
# Thousands of tokens that never end by themselves.
LONG = ScriptedSettings(law=HashLaw(), max_context=8192)
HOST = "127.0.0.1"


class ManualTime:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Gate:
    """A lifecycle observer that holds whoever reaches its stage, while it is closed.

    By default that is the engine thread, before a pass.
    """

    def __init__(self, stage: LifecycleStage = LifecycleStage.EXECUTION) -> None:
        self._stage = stage
        self._open = threading.Event()
        self._open.set()

    def __call__(self, stage: LifecycleStage) -> None:
        if stage is self._stage:
            self._open.wait()

    @contextmanager
    def closed(self) -> Iterator[None]:
        self._open.clear()
        try:
            yield
        finally:
            self._open.set()


def loaded(settings: ScriptedSettings = SCRIPTED, gate: Gate | None = None) -> LoadedModel:
    scripted = scripted_model(settings)
    tokenizer = parse_tokenizer(scripted.tokenizer_json, "scripted")
    template = ChatTemplate(
        scripted.chat_template,
        path=scripted.name,
        bos_token=scripted.bos_token,
        eos_token=scripted.eos_token,
    )
    return LoadedModel(
        name=scripted.name,
        target=scripted.target,
        text=ModelText(
            scripted.name,
            tokenizer,
            template,
            Recogniser(template, tokenizer, scripted.eos_token_ids).dialect(),
        ),
        eos_token_ids=scripted.eos_token_ids,
        proposers=tuple(
            LoadedProposer(name, SpeculationMode.DRAFT_MODEL, proposer)
            for name, proposer in scripted.proposers.items()
        ),
        defaults=scripted.defaults,
        capability=Ready(DraftSource.SEPARATE),
        observer=gate or Gate(),
    )


@dataclass
class Served:
    """A running server, and stubs on one channel to it."""

    server: Server
    runtime: Runtime
    port: int
    channel: aio.Channel
    generation: GenerationServiceStub = field(init=False)
    models: ModelServiceStub = field(init=False)
    scheduler: SchedulerServiceStub = field(init=False)

    def __post_init__(self) -> None:
        self.generation = GenerationServiceStub(self.channel)
        self.models = ModelServiceStub(self.channel)
        self.scheduler = SchedulerServiceStub(self.channel)

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"


@asynccontextmanager
async def served(
    model: LoadedModel | None = None,
    runtime_options: RuntimeOptions | None = None,
    options: ServerOptions | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> AsyncIterator[Served]:
    models = ModelRegistry([model or loaded()])
    runtime = Runtime(models, runtime_options or RuntimeOptions(), clock)
    server = Server(runtime, options or ServerOptions(port=0))
    port = await server.start()
    async with aio.insecure_channel(f"{HOST}:{port}") as channel:
        try:
            yield Served(server, runtime, port, channel)
        finally:
            await server.drain(0.0)


def generation(text: str = "once", **settings: object) -> generation_pb2.Generation:
    return generation_pb2.Generation(
        text=text, settings=settings_pb2.GenerationSettings(**settings)
    )


def start(request_id: str, text: str = "once", **settings: object) -> GenerateRequest:
    return GenerateRequest(request_id=request_id, start=generation(text, **settings))


def cancel(request_id: str) -> GenerateRequest:
    return GenerateRequest(request_id=request_id, cancel=GenerateRequest.Cancel())


def text_of(events: Iterable[generation_pb2.SemanticEvent]) -> str:
    return "".join(event.text_delta for event in events)


class Bidi:
    """One `Generate` call: what was sent, and the responses by request id."""

    def __init__(self, served: Served) -> None:
        self.call = served.generation.Generate()

    async def send(self, *requests: GenerateRequest) -> None:
        for request in requests:
            await self.call.write(request)

    async def next(self) -> GenerateResponse:
        response = await self.call.read()
        assert isinstance(response, GenerateResponse)
        return response

    async def until_terminal(self, *request_ids: str) -> dict[str, list[GenerateResponse]]:
        """Read until each of these requests has ended."""
        received: dict[str, list[GenerateResponse]] = {}
        open_ids = set(request_ids)
        while open_ids:
            response = await self.next()
            received.setdefault(response.request_id, []).append(response)
            if response.WhichOneof("event") in {"finished", "failed"}:
                open_ids.discard(response.request_id)
        return received


class HeldCall:
    """A call whose writes wait until they are let through."""

    def __init__(self) -> None:
        self.is_writing = asyncio.Event()
        self.is_open = asyncio.Event()
        self.written: list[GenerateResponse] = []

    def invocation_metadata(self) -> tuple[()]:
        return ()

    def peer(self) -> str:
        return "nobody"

    def time_remaining(self) -> None:
        return None

    async def write(self, response: GenerateResponse) -> None:
        self.is_writing.set()
        await self.is_open.wait()
        self.written.append(response)


def kinds(responses: Iterable[GenerateResponse]) -> list[str | None]:
    return [response.WhichOneof("event") for response in responses]


def tokens_of(responses: Iterable[GenerateResponse]) -> list[int]:
    return [token for response in responses for token in response.round.tokens.token_ids]


async def gone(served: Served) -> SchedulerStatistics:
    """Wait until no request lives, and return what the scheduler counted."""
    await asyncio.wait_for(served.runtime._live.until_empty(), 30)
    return served.runtime.statistics().scheduler


async def until(condition: Callable[[], bool]) -> None:
    """Let the event loop run until something that only it can bring about holds."""
    while not condition():  # noqa: ASYNC110 - what is awaited has no event of its own
        await asyncio.sleep(0)


async def complete(server: Served, message: generation_pb2.Generation) -> CompleteResponse:
    return await server.generation.Complete(CompleteRequest(generation=message))


async def stream(
    server: Served, message: generation_pb2.Generation
) -> list[StreamGenerateResponse]:
    return await exhausted(
        server.generation.StreamGenerate(StreamGenerateRequest(generation=message))
    )


async def exhausted(call: AsyncIterator[StreamGenerateResponse]) -> list[StreamGenerateResponse]:
    return [response async for response in call]
