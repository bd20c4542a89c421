"""Memory of the server process over many short requests."""

from __future__ import annotations

import asyncio
from statistics import linear_regression

from benchmarks.bench import Bench
from benchmarks.client import SPECULATIVE, Wanted, answer
from benchmarks.results import Better, Figure, Result
from benchmarks.server import ServerProcess, serving

WINDOWS = 10
AT_ONCE = 8
_MEBIBYTE = 2**20

# The tokenizer remembers the first 10,000 distinct words that it meets, some 8 MiB. More words
# would show that cache as it fills, and not what a request leaves behind.
_WORDS = 100


async def measure_memory(bench: Bench) -> Result:
    """Follow the resident memory over ten thousand requests; the first tenth is warming up."""
    scripted = bench.size(10_000, 400)
    default = bench.size(1_000, 80)
    async with serving("--engine", "scripted") as server:
        small = await _follow(bench, server, scripted)
    async with serving() as server:
        real = await _follow(bench, server, default)
    return Result(
        figures=(
            Figure(
                f"memory, {scripted} requests, scripted",
                _growth(small),
                "%",
                goal=2.0,
                better=Better.LOWER,
            ),
            Figure("  slope", _slope(small, scripted), "KiB/1000"),
            Figure(f"memory, {default} requests", _growth(real), "%"),
            Figure("  slope", _slope(real, default), "KiB/1000"),
        ),
        details={
            "scripted_mib": [each / _MEBIBYTE for each in small],
            "default_model_mib": [each / _MEBIBYTE for each in real],
        },
    )


async def _follow(bench: Bench, server: ServerProcess, requests: int) -> list[int]:
    """Return the resident bytes after each tenth of the requests."""
    window = requests // WINDOWS
    sizes: list[int] = []
    for index in range(WINDOWS):
        bench.tell(f"{requests} requests", index, WINDOWS)
        last = (index + 1) * window
        await asyncio.gather(
            *(_ask(server, range(last - window + lane, last, AT_ONCE)) for lane in range(AT_ONCE))
        )
        sizes.append(server.resident_bytes())
    return sizes


async def _ask(server: ServerProcess, numbers: range) -> None:
    """Make short requests one after the other."""
    for number in numbers:
        await answer(server, f"Count on from {number % _WORDS}.", Wanted(4, SPECULATIVE))


def _growth(sizes: list[int]) -> float:
    """Return by how many percent the last look is above the second."""
    return 100.0 * (sizes[-1] - sizes[1]) / sizes[1]


def _slope(sizes: list[int], requests: int) -> float:
    """Return KiB for each thousand requests, of a straight line through all looks but the first."""
    places = [requests * (index + 1) / WINDOWS / 1000 for index in range(1, WINDOWS)]
    return linear_regression(places, [size / 1024 for size in sizes[1:]]).slope
