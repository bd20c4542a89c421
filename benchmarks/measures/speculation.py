"""What speculation brings through the server: on copying prompts, and on Spec-Bench."""

from __future__ import annotations

from dataclasses import asdict
from statistics import mean

from benchmarks.bench import Bench
from benchmarks.comparison import Pair, Speed, compare, speed
from benchmarks.prompts import copying, spec_bench
from benchmarks.results import Figure, Result
from benchmarks.server import serving


async def measure_copying(bench: Bench) -> Result:
    """Compare on prompts that ask for a given text with a small change."""
    prompts = copying(bench.size(None, 2))
    async with serving() as server:
        pairs = await compare(bench, server, prompts)
    whole = speed(pairs)
    return Result(
        figures=(
            Figure("copying, speculative / plain", whole.decoding, "x", goal=1.4),
            Figure("  prompt included", whole.request, "x"),
            Figure("  tokens a pass", whole.tokens_a_pass),
        ),
        identical=whole.identical,
        details={"all": asdict(whole), "prompts": _by_prompt(pairs)},
    )


async def measure_spec_bench(bench: Bench) -> Result:
    """Compare on five prompts of each of Spec-Bench's 13 categories; the mean is over those."""
    prompts = spec_bench(per_category=bench.size(5, 1))
    async with serving() as server:
        pairs = await compare(bench, server, prompts)
    by_category = _by_category(pairs)
    whole = speed(pairs)
    decoding = {name: one.decoding for name, one in by_category.items()}
    worst = min(decoding, key=decoding.__getitem__)
    return Result(
        figures=(
            Figure("Spec-Bench, speculative / plain", mean(decoding.values()), "x", goal=1.15),
            Figure(f"  worst, {worst}", decoding[worst], "x", goal=0.97),
            Figure("  prompt included", mean(one.request for one in by_category.values()), "x"),
            Figure("  tokens a pass", whole.tokens_a_pass),
        ),
        identical=whole.identical,
        details={
            "all": asdict(whole),
            "categories": {name: asdict(one) for name, one in by_category.items()},
            "prompts": _by_prompt(pairs),
        },
    )


def _by_category(pairs: tuple[Pair, ...]) -> dict[str, Speed]:
    categories = dict.fromkeys(pair.prompt.category for pair in pairs)
    return {
        category: speed([pair for pair in pairs if pair.prompt.category == category])
        for category in categories
    }


def _by_prompt(pairs: tuple[Pair, ...]) -> dict[str, dict[str, object]]:
    return {pair.prompt.name: asdict(speed([pair])) for pair in pairs}
