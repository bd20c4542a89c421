"""One stream through the server against the bare engine, in turns and with the same tokens."""

from __future__ import annotations

import time
from statistics import median

from benchmarks.bare import BareLoop, chat, decoder_of, default_model
from benchmarks.bench import Bench
from benchmarks.client import Wanted, answer
from benchmarks.prompts import spec_bench
from benchmarks.results import Figure, Result
from benchmarks.server import serving


async def measure_overhead(bench: Bench) -> Result:
    """Divide the server's tokens a second by the bare loop's, whole requests on both sides."""
    texts = [prompt.text for prompt in spec_bench() if prompt.category == "qa"]
    wanted = Wanted(bench.size(128, 24), stop_on_eos=False)
    model = default_model(max_slots=1)
    loop = BareLoop(decoder_of(model))
    served: list[float] = []
    bare: list[float] = []
    identical = True
    async with serving() as server:
        await answer(server, texts[0], wanted)
        loop.say(chat(model, texts[0]), wanted.max_tokens)
        turns = texts[: bench.size(None, 2)] * bench.repetitions
        for index, text in enumerate(turns):
            bench.tell("bare loop, then server", index, len(turns))
            prompt = chat(model, text)
            started = time.perf_counter()
            said = loop.say(prompt, wanted.max_tokens)
            bare.append(time.perf_counter() - started)
            streamed = await answer(server, text, wanted)
            served.append(streamed.seconds)
            identical &= streamed.tokens == said
    ratios = [one / other for one, other in zip(bare, served, strict=True)]
    return Result(
        figures=(
            Figure("server / bare loop", median(ratios), "x", goal=0.9),
            Figure("  server", wanted.max_tokens / median(served), "tokens/s"),
            Figure("  bare loop", wanted.max_tokens / median(bare), "tokens/s"),
        ),
        identical=identical,
        details={"ratios": ratios, "seconds_served": served, "seconds_bare": bare},
    )
