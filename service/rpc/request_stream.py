"""Many requests on one call: each answered under its own id, written one message at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from grpc import aio

from outrider.v1 import generation_pb2
from outrider.v1.generation_service_pb2 import GenerateRequest, GenerateResponse
from service.errors import NoSuchRequest
from service.rpc.answers import Step, steps
from service.rpc.calls import Context, caller_of, status_and_log
from service.rpc.generation_checks import validate_generation
from service.rpc.messages import admitted_message
from service.rpc.requests import generation_request
from service.runtime.generation import Generation
from service.runtime.request import GenerationRequest
from service.runtime.runtime import Runtime

ROOT = "start"
MAX_UNSENT = 64
"""How many messages may wait to be written before no more requests are read."""


class RequestStream:
    """Serves one call; a request that fails says so and leaves the others alone."""

    def __init__(self, runtime: Runtime, context: Context) -> None:
        self._runtime = runtime
        self._context = context
        self._caller = caller_of(context)
        self._live: set[Generation] = set()
        self._failure: Exception | None = None
        self._writing = asyncio.Lock()
        self._unsent = 0

    async def run(self, requests: AsyncIterator[GenerateRequest]) -> None:
        """Read until the client closes its side, and return when every answer is written.

        Ids are taken in the order in which requests come; none waits while
        another is prepared. What is still live when this is cancelled is too.

        Raises:
            Exception: reading failed, which cancelled what was live.
        """
        async with asyncio.TaskGroup() as answers:
            await self._read(requests, answers)
        if self._failure is not None:
            raise self._failure

    async def _read(
        self, requests: AsyncIterator[GenerateRequest], answers: asyncio.TaskGroup
    ) -> None:
        try:
            async for request in requests:
                self._take(request, answers)
                # Lets it take its id before a message that may cancel it is read.
                await asyncio.sleep(0)
                await self._until_few_unsent()
        except Exception as failure:  # noqa: BLE001 - `run` raises it
            # The answers end by themselves: torn down, one could leave a write
            # behind, and under a write no call can be given its status.
            self._failure = failure
            for generation in self._live:
                generation.cancel()

    def _take(self, request: GenerateRequest, answers: asyncio.TaskGroup) -> None:
        """Start or cancel one request."""
        try:
            validate_generation(request, ROOT, self._runtime)
        except Exception as error:  # noqa: BLE001 - every failure is that request's answer
            answers.create_task(self._fail(request.request_id, error, None))
            return
        if request.HasField("cancel"):
            self._cancel(request.request_id)
            return
        answers.create_task(self._answer(self._portable(request)))

    def _cancel(self, request_id: str) -> None:
        # It may just have ended.
        with suppress(NoSuchRequest):
            self._runtime.cancel(self._caller, request_id)

    def _portable(self, request: GenerateRequest) -> GenerationRequest:
        return generation_request(
            request.start,
            request_id=request.request_id,
            caller=self._caller,
            time_remaining=self._context.time_remaining(),
        )

    async def _answer(self, request: GenerationRequest) -> None:
        name = request.request_id
        try:
            async with self._running(request) as generation:
                admitted = admitted_message(generation.admitted, request)
                await self._send(GenerateResponse(request_id=name, admitted=admitted))
                async for step in steps(generation):
                    await self._send(_response(name, step))
        except aio.BaseError:
            # The connection has gone, and the call with it.
            return
        except Exception as error:  # noqa: BLE001 - every failure is that request's answer
            await self._fail(name, error, ROOT)

    @asynccontextmanager
    async def _running(self, request: GenerationRequest) -> AsyncIterator[Generation]:
        """Hold one admitted request; leaving cancels whatever of it still runs."""
        generation = await self._runtime.generate(request)
        self._live.add(generation)
        try:
            if self._failure is not None:
                generation.cancel()
            yield generation
        finally:
            self._live.discard(generation)
            generation.cancel()

    async def _fail(self, request_id: str, error: Exception, root: str | None) -> None:
        status = status_and_log(error, request_id=request_id, root=root)
        with suppress(aio.BaseError):  # as in `_answer`
            await self._send(GenerateResponse(request_id=request_id, failed=status))

    async def _send(self, response: GenerateResponse) -> None:
        self._unsent += 1
        try:
            async with self._writing:
                await self._context.write(response)
        finally:
            self._unsent -= 1

    async def _until_few_unsent(self) -> None:
        """Bound what a client leaves unread: wait behind what waits to be written."""
        if self._unsent >= MAX_UNSENT:
            async with self._writing:
                return


def _response(request_id: str, step: Step) -> GenerateResponse:
    if isinstance(step, generation_pb2.Round):
        return GenerateResponse(request_id=request_id, round=step)
    return GenerateResponse(request_id=request_id, finished=step)
