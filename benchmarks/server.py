"""A server process, as people start it, and its memory."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from grpc import aio

from benchmarks.machine import ROOT

_START_SECONDS = 120
_STOP_SECONDS = 60


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """A server that is listening, and a channel to it."""

    pid: int
    channel: aio.Channel

    def resident_bytes(self) -> int:
        """Return how much of the process lies in memory now."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


@asynccontextmanager
async def serving(*flags: str) -> AsyncIterator[ServerProcess]:
    """Run `outrider serve` on a free port of the loopback for as long as the context lasts.

    Raises:
        RuntimeError: it did not start; the message is what it said.
    """
    command = (sys.executable, "-m", "service", "serve", "--json", "--port", "0", *flags)
    with tempfile.TemporaryFile() as log:
        process = await asyncio.create_subprocess_exec(
            *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=log
        )
        try:
            address = await _address(process)
            if address is None:
                log.seek(0)
                raise RuntimeError(f"the server did not start: {log.read().decode()}")
            async with aio.insecure_channel(address) as channel:
                yield ServerProcess(process.pid, channel)
        finally:
            await _end(process)


async def _address(process: asyncio.subprocess.Process) -> str | None:
    """Wait until the server says where it listens; None if it ends instead."""
    if process.stdout is None:
        return None
    async with asyncio.timeout(_START_SECONDS):
        line = await process.stdout.readline()
    return str(json.loads(line)["address"]) if line else None


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    process.terminate()
    try:
        async with asyncio.timeout(_STOP_SECONDS):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
