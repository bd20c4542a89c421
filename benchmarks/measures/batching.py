"""Eight streams at once against the same eight one after the other."""

from __future__ import annotations

import asyncio
import time
from statistics import median

from benchmarks.bench import Bench
from benchmarks.client import Answer, Wanted, answer
from benchmarks.prompts import spec_bench
from benchmarks.results import Figure, Result
from benchmarks.server import ServerProcess, serving

STREAMS = 8


async def measure_batching(bench: Bench) -> Result:
    """Divide the total tokens a second of eight streams by those of one, both plain."""
    texts = [prompt.text for prompt in spec_bench() if prompt.category == "qa"][:STREAMS]
    wanted = Wanted(bench.size(128, 24), stop_on_eos=False)
    alone: list[float] = []
    together: list[float] = []
    answers: set[tuple[tuple[int, ...], ...]] = set()
    async with serving("--slots", str(STREAMS)) as server:
        await _at_once(server, texts, wanted)
        for repetition in range(bench.repetitions):
            bench.tell("one stream, then eight", repetition, bench.repetitions)
            for run, seconds in ((_in_turn, alone), (_at_once, together)):
                started = time.perf_counter()
                said = await run(server, texts, wanted)
                seconds.append(time.perf_counter() - started)
                answers.add(tuple(one.tokens for one in said))
    tokens = STREAMS * wanted.max_tokens
    one, eight = tokens / median(alone), tokens / median(together)
    return Result(
        figures=(
            Figure("eight streams / one", eight / one, "x", goal=3.0),
            Figure("  one stream", one, "tokens/s"),
            Figure("  eight streams", eight, "tokens/s"),
        ),
        identical=len(answers) == 1,
        details={"seconds_one_by_one": alone, "seconds_at_once": together, "tokens": tokens},
    )


async def _in_turn(server: ServerProcess, texts: list[str], wanted: Wanted) -> list[Answer]:
    return [await answer(server, text, wanted) for text in texts]


async def _at_once(server: ServerProcess, texts: list[str], wanted: Wanted) -> list[Answer]:
    return list(await asyncio.gather(*(answer(server, text, wanted) for text in texts)))
