"""Many requests on one call: each answered under its own id, written one message at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from grpc import aio

from outrider.v1 import generation_pb2
from outrider.v1.generation_service_pb2 import GenerateRequest, GenerateResponse
from service.errors import NoSuchRequest
from service.rpc.answers import Step, steps
from service.rpc.calls import Context, caller_of, status_and_log
from service.rpc.messages import admitted_message
from service.rpc.requests import generation_request
from service.rpc.validation import validate
from service.runtime.generation import Generation
from service.runtime.request import GenerationRequest
from service.runtime.runtime import Runtime

ROOT = "start"


class RequestStream:
    """Serves one call; a request that fails says so and leaves the others alone."""

    def __init__(self, runtime: Runtime, context: Context) -> None:
        self._runtime = runtime
        self._context = context
        self._caller = caller_of(context)
        self._live: set[Generation] = set()
        self._writing = asyncio.Lock()

    async def run(self, requests: AsyncIterator[GenerateRequest]) -> None:
        """Read until the client closes its side, and return when every answer is written.

        Requests are admitted in the order in which they come. Whatever is
        still live when this ends early is cancelled.
        """
        try:
            async with asyncio.TaskGroup() as answers:
                async for request in requests:
                    await self._take(request, answers)
        finally:
            for generation in self._live:
                generation.cancel()

    async def _take(self, request: GenerateRequest, answers: asyncio.TaskGroup) -> None:
        """Start or cancel one request; never waits for a write."""
        root = None
        try:
            validate(request)
            if request.HasField("cancel"):
                self._cancel(request.request_id)
                return
            root = ROOT
            portable = self._portable(request)
            generation = await self._runtime.generate(portable)
        except Exception as error:  # noqa: BLE001 - every failure is that request's answer
            answers.create_task(self._fail(request.request_id, error, root))
            return
        self._live.add(generation)
        answers.create_task(self._answer(portable, generation))

    def _cancel(self, request_id: str) -> None:
        try:
            self._runtime.cancel(self._caller, request_id)
        except NoSuchRequest:
            # It may just have ended.
            return

    def _portable(self, request: GenerateRequest) -> GenerationRequest:
        return generation_request(
            request.start,
            request_id=request.request_id,
            caller=self._caller,
            time_remaining=self._context.time_remaining(),
        )

    async def _answer(self, request: GenerationRequest, generation: Generation) -> None:
        try:
            admitted = admitted_message(generation.admitted, request)
            await self._send(GenerateResponse(request_id=request.request_id, admitted=admitted))
            async for step in steps(generation):
                await self._send(_response(request.request_id, step))
        except aio.BaseError:
            # The connection has gone, and the call with it.
            return
        except Exception as error:  # noqa: BLE001 - every failure is that request's answer
            await self._fail(request.request_id, error, ROOT)
        finally:
            generation.cancel()
            self._live.discard(generation)

    async def _fail(self, request_id: str, error: Exception, root: str | None) -> None:
        status = status_and_log(error, request_id=request_id, root=root)
        await self._send(GenerateResponse(request_id=request_id, failed=status))

    async def _send(self, response: GenerateResponse) -> None:
        async with self._writing:
            await self._context.write(response)


def _response(request_id: str, step: Step) -> GenerateResponse:
    if isinstance(step, generation_pb2.Round):
        return GenerateResponse(request_id=request_id, round=step)
    return GenerateResponse(request_id=request_id, finished=step)
