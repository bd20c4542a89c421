"""What surrounds every call: its failure becomes a status, and its end a line in the log."""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from hashlib import blake2b
from typing import Any, NoReturn, TypeAlias

import grpc
from google.rpc.status_pb2 import Status as StatusMessage
from grpc import aio

from service.errors import Status
from service.rpc.decoding import each_message, only_message
from service.rpc.errors import status_of, trailers

Context: TypeAlias = "aio.ServicerContext[Any, Any]"
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

CODES = {code.value[0]: code for code in grpc.StatusCode}
QUIET_PACKAGES = ("/grpc.health.", "/grpc.reflection.")

logger = logging.getLogger("outrider.rpc")


def caller_of(context: Context) -> str:
    """Return who calls, in whose scope request ids are unique: the token, else the connection."""
    metadata = context.invocation_metadata() or ()
    token = next((value for key, value in metadata if key == "authorization"), None)
    if token is None:
        return context.peer()
    secret = token if isinstance(token, bytes) else token.encode()
    return f"token:{blake2b(secret, digest_size=16).hexdigest()}"


def status_and_log(
    error: Exception, *, request_id: str | None = None, root: str | None = None
) -> StatusMessage:
    """Return the status of a failure; what it does not show goes to the log."""
    status = status_of(error, request_id=request_id, root=root)
    if status.code == Status.INTERNAL.value:
        logger.error("request %s failed", request_id or "-", exc_info=error)
    return status


@asynccontextmanager
async def aborting(
    context: Context, *, request_id: str | None = None, root: str | None = None
) -> AsyncIterator[None]:
    """End the RPC with the status of whatever the block raises; a cancelled one just ends."""
    try:
        yield
    except aio.BaseError:
        # An abort on its way out, or a write on a connection that has gone.
        raise
    except Exception as error:  # noqa: BLE001 - every failure has a status
        await _abort(context, error, status_and_log(error, request_id=request_id, root=root))


async def _abort(context: Context, error: Exception, status: StatusMessage) -> NoReturn:
    await context.abort(CODES[status.code], status.message, trailers(error, status))


class CallInterceptor(aio.ServerInterceptor):
    """Wraps all four kinds of handlers; `in_flight` counts the calls that have not ended."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.in_flight = 0

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        return self._wrapped(handler, handler_call_details.method)

    def _wrapped(self, handler: Handler, method: str) -> Handler:
        """Return the handler with everything that it does surrounded.

        On the wire one message is a stream of one. Read as such, in here, bytes
        that cannot be decoded and calls without a message get a status too.
        """
        behaviour = _behaviour_of(handler)
        decode = handler.request_deserializer or bytes

        async def request_of(context: Context) -> Any:
            if handler.request_streaming:
                return each_message(context, decode)
            return await only_message(context, decode)

        async def respond(_: object, context: Context) -> Any:
            async with self._call(method, context):
                return await behaviour(await request_of(context), context)

        async def stream(_: object, context: Context) -> None:
            async with self._call(method, context):
                request = await request_of(context)
                # Writing here rather than yielding: a cancellation while a
                # write is blocked then arrives inside the handler.
                if not inspect.isasyncgenfunction(behaviour):
                    await behaviour(request, context)
                    return
                async for response in behaviour(request, context):
                    await context.write(response)

        if handler.response_streaming:
            return grpc.stream_stream_rpc_method_handler(stream, None, handler.response_serializer)
        return grpc.stream_unary_rpc_method_handler(respond, None, handler.response_serializer)

    @asynccontextmanager
    async def _call(self, method: str, context: Context) -> AsyncIterator[None]:
        started = self._clock()
        outcome = "OK"
        self.in_flight += 1
        try:
            async with aborting(context):
                yield
        except asyncio.CancelledError:
            outcome = "CANCELLED"
            raise
        except aio.AbortError:
            outcome = context.code().name
            raise
        except aio.BaseError:
            outcome = "UNAVAILABLE"
            raise
        finally:
            self.in_flight -= 1
            level = logging.DEBUG if method.startswith(QUIET_PACKAGES) else logging.INFO
            seconds = self._clock() - started
            logger.log(level, "method=%s code=%s seconds=%.3f", method, outcome, seconds)


def _behaviour_of(handler: Handler) -> Callable[..., Any]:
    """Return what a handler does, whichever of the four kinds it is."""
    behaviours: tuple[Callable[..., Any] | None, ...] = (
        handler.unary_unary,
        handler.unary_stream,
        handler.stream_unary,
        handler.stream_stream,
    )
    return next(behaviour for behaviour in behaviours if behaviour is not None)
