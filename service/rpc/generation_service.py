"""Generation over gRPC: many requests on one stream, one streamed, or one whole."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from outrider.v1 import generation_pb2
from outrider.v1.generation_service_pb2 import (
    CompleteRequest,
    CompleteResponse,
    GenerateRequest,
    StreamGenerateRequest,
    StreamGenerateResponse,
)
from outrider.v1.generation_service_pb2_grpc import GenerationServiceServicer
from service.rpc.answers import Step, steps
from service.rpc.calls import Context, aborting, caller_of
from service.rpc.generation_checks import validate_generation
from service.rpc.messages import admitted_message
from service.rpc.request_stream import RequestStream
from service.rpc.requests import generation_request
from service.rpc.whole_output import WholeOutput
from service.runtime.generation import Generation
from service.runtime.runtime import Runtime

ROOT = "generation"


class GenerationService(GenerationServiceServicer):
    """Serves a runtime's generations; a caller that goes away cancels its own."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def Generate(  # type: ignore[override]  # it writes: a cancel arrives in here
        self, request_iterator: AsyncIterator[GenerateRequest], context: Context
    ) -> None:
        await RequestStream(self._runtime, context).run(request_iterator)

    async def StreamGenerate(  # type: ignore[override]  # as Generate
        self, request: StreamGenerateRequest, context: Context
    ) -> None:
        async with self._running(request, context) as (admitted, generation):
            await context.write(StreamGenerateResponse(admitted=admitted))
            async for step in steps(generation):
                await context.write(_response(step))

    async def Complete(self, request: CompleteRequest, context: Context) -> CompleteResponse:
        output = WholeOutput()
        async with self._running(request, context) as (admitted, generation):
            async for step in steps(generation):
                if isinstance(step, generation_pb2.Finished):
                    return output.response(admitted, step)
                output.add(step)
        raise AssertionError("an answer ends with its last step")

    @asynccontextmanager
    async def _running(
        self, request: StreamGenerateRequest | CompleteRequest, context: Context
    ) -> AsyncIterator[tuple[generation_pb2.Admitted, Generation]]:
        """Hold one admitted request; leaving cancels whatever of it still runs."""
        async with aborting(context, request_id=request.request_id or None):
            validate_generation(request, ROOT, self._runtime)
        portable = generation_request(
            request.generation,
            request_id=request.request_id,
            caller=caller_of(context),
            time_remaining=context.time_remaining(),
        )
        async with aborting(context, request_id=portable.request_id, root=ROOT):
            generation = await self._runtime.generate(portable)
            try:
                yield admitted_message(generation.admitted, portable), generation
            finally:
                generation.cancel()


def _response(step: Step) -> StreamGenerateResponse:
    if isinstance(step, generation_pb2.Round):
        return StreamGenerateResponse(round=step)
    return StreamGenerateResponse(finished=step)
