"""Serving until a signal: one coroutine, and the event loop that it runs best on."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from service.rpc.options import ServerOptions
from service.rpc.server import Server
from service.runtime.runtime import Runtime

T = TypeVar("T")

logger = logging.getLogger("outrider.rpc")


async def serve(runtime: Runtime, options: ServerOptions, ready: Callable[[int], None]) -> None:
    """Serve until SIGTERM or SIGINT, then drain; a second signal ends the wait.

    Args:
        runtime: not started yet; stopped when this returns.
        options: how to listen, and how long to drain.
        ready: told the bound port once requests are taken; what it raises stops the server.

    Raises:
        AddressUnavailable: the address cannot be bound; nothing was started.
    """
    server = Server(runtime, options)
    with _signals() as signals:
        port = await server.start()
        try:
            ready(port)
        except BaseException:
            await server.drain(0.0)
            raise
        await signals.get()
        grace = options.drain_grace_seconds
        logger.info("draining calls=%d grace_seconds=%g", server.in_flight, grace)
        hurrying = asyncio.create_task(_hurry(signals, runtime))
        await server.drain(grace)
        hurrying.cancel()


async def _hurry(signals: asyncio.Queue[signal.Signals], runtime: Runtime) -> None:
    await signals.get()
    await runtime.drain(0.0)


@contextmanager
def _signals() -> Iterator[asyncio.Queue[signal.Signals]]:
    """Queue the signals that ask the process to end, instead of ending it."""
    loop = asyncio.get_running_loop()
    received: asyncio.Queue[signal.Signals] = asyncio.Queue()
    asked = (signal.SIGTERM, signal.SIGINT)
    for number in asked:
        loop.add_signal_handler(number, received.put_nowait, number)
    try:
        yield received
    finally:
        for number in asked:
            loop.remove_signal_handler(number)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on uvloop where there is one, else on asyncio's own loop."""
    try:
        from uvloop import new_event_loop  # noqa: PLC0415 - not on every platform
    except ImportError:
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)
