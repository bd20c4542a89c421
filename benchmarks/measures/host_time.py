"""Host time a pass: what the engine's thread does outside ONNX Runtime."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from benchmarks.bare import default_model
from benchmarks.bench import Bench
from benchmarks.prompts import Prompt, copying, spec_bench
from benchmarks.results import Figure, Result
from benchmarks.stopwatch import timing
from engines.onnx.bindings import RangeBinding
from service.generation.config import GenerationOverrides
from service.runtime.engine import Engine
from service.runtime.models import ModelRegistry
from service.runtime.request import (
    ChatPrompt,
    GenerationRequest,
    SpeculationMode,
    SpeculationRequest,
)
from service.runtime.runtime import Runtime
from service.text.conversation import ChatMessage


@dataclass(frozen=True, slots=True)
class HostTime:
    """Microseconds of a pass on the host, and their share of the engine thread's work.

    `busy_microseconds` are those in which the thread had a processor: without
    waiting for the interpreter's lock, or for a core.
    """

    microseconds: float
    busy_microseconds: float
    share: float
    passes: int
    tokens: int


async def measure_host_time(bench: Bench) -> Result:
    """Time the engine's turns of one and of eight requests, plain and speculative."""
    runtime = Runtime(ModelRegistry([default_model(max_slots=8)]))
    await runtime.start()
    plain = [prompt for prompt in spec_bench() if prompt.category == "qa"]
    cases = {
        "one plain lane": (plain[:1], SpeculationMode.NONE),
        "eight plain lanes": (plain[:8], SpeculationMode.NONE),
        "one speculative lane": (copying(1), SpeculationMode.AUTO),
        "eight speculative lanes": (copying(8), SpeculationMode.AUTO),
    }
    times: dict[str, HostTime] = {}
    for index, (name, (prompts, mode)) in enumerate(cases.items()):
        bench.tell(name, index, len(cases))
        times[name] = await _host_time(runtime, prompts, mode, bench.size(96, 16))
    await runtime.stop()
    figures = [
        Figure(f"host time, {name}" if not index else f"  {name}", one.microseconds, "µs a pass")
        for index, (name, one) in enumerate(times.items())
    ]
    return Result(tuple(figures), details={name: asdict(one) for name, one in times.items()})


async def _host_time(
    runtime: Runtime, prompts: Sequence[Prompt], mode: SpeculationMode, max_tokens: int
) -> HostTime:
    before = runtime.statistics().scheduler
    with timing(Engine, "turn") as turns, timing(RangeBinding, "run") as engine:
        await asyncio.gather(*(_consume(runtime, one, mode, max_tokens) for one in prompts))
    after = runtime.statistics().scheduler
    passes = (after.prefill_passes + after.verification_passes) - (
        before.prefill_passes + before.verification_passes
    )
    host = turns.seconds - engine.seconds
    return HostTime(
        microseconds=1e6 * host / passes,
        busy_microseconds=1e6 * (turns.busy - engine.busy) / passes,
        share=host / turns.seconds,
        passes=passes,
        tokens=after.emitted_tokens - before.emitted_tokens,
    )


async def _consume(
    runtime: Runtime, prompt: Prompt, mode: SpeculationMode, max_tokens: int
) -> None:
    request = GenerationRequest(
        request_id=prompt.name,
        caller="benchmark",
        model="",
        prompt=ChatPrompt((ChatMessage("user", prompt.text),)),
        overrides=GenerationOverrides(temperature=0.0, max_new_tokens=max_tokens),
        stop_on_eos=False,
        speculation=SpeculationRequest(mode),
    )
    async for _ in await runtime.generate(request):
        pass
