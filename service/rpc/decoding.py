"""Request messages off the wire: one that cannot be decoded is its caller's mistake."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from google.protobuf.message import DecodeError
from grpc import aio

from service.errors import MalformedMessage

Decode = Callable[[bytes], Any]


async def only_message(context: aio.ServicerContext[Any, Any], decode: Decode) -> Any:
    """Return the message of a call that has one.

    Raises:
        MalformedMessage: there is none, or it cannot be decoded.
    """
    raw: Any = await context.read()
    if raw is aio.EOF:
        raise MalformedMessage("the call has no message")
    return _decoded(raw, decode)


async def each_message(
    context: aio.ServicerContext[Any, Any], decode: Decode
) -> AsyncIterator[Any]:
    """Yield the messages of a call that has any number.

    Raises:
        MalformedMessage: the next one cannot be decoded.
    """
    while True:
        raw: Any = await context.read()
        if raw is aio.EOF:
            return
        yield _decoded(raw, decode)


def _decoded(raw: bytes, decode: Decode) -> Any:
    try:
        return decode(raw)
    except DecodeError as error:
        raise MalformedMessage(f"the message cannot be decoded: {error}") from error
