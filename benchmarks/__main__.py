"""Run measurements one after the other; write them as JSON and show them as a table."""

from __future__ import annotations

import asyncio
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from benchmarks.bench import Bench
from benchmarks.machine import circumstances
from benchmarks.measures.batching import measure_batching
from benchmarks.measures.cost_curve import measure_cost_curve
from benchmarks.measures.host_time import measure_host_time
from benchmarks.measures.memory import measure_memory
from benchmarks.measures.overhead import measure_overhead
from benchmarks.measures.speculation import measure_copying, measure_spec_bench
from benchmarks.results import Result, ResultFile
from benchmarks.table import show

MEASURES: dict[str, Callable[[Bench], Awaitable[Result]]] = {
    "overhead": measure_overhead,
    "batching": measure_batching,
    "copying": measure_copying,
    "spec-bench": measure_spec_bench,
    "host-time": measure_host_time,
    "memory": measure_memory,
    "cost-curve": measure_cost_curve,
}
OUTPUT = Path(__file__).parent / "results" / "latest.json"


def main() -> int:
    """Measure what was asked for, show all that is known; return 1 if outputs were not equal."""
    arguments = _arguments()
    kept = ResultFile(arguments.output)
    names = arguments.only or list(MEASURES)
    if arguments.resume:
        names = [name for name in names if name not in kept.measurements]
    console = Console(stderr=True)
    for name in names:
        started, found = time.monotonic(), circumstances()
        result = _measure(name, console, arguments)
        run = {
            "quick": arguments.quick,
            "repetitions": arguments.repetitions,
            "seconds": round(time.monotonic() - started, 1),
        }
        kept.keep(name, {**found, **run, **result.to_json()})
    results = kept.results()
    show(Console(), results)
    console.print(f"written to {arguments.output}")
    return int(any(result.identical is False for result in results.values()))


def _arguments() -> Namespace:
    parser = ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--only", action="append", choices=MEASURES, help="measure this one; repeatable"
    )
    parser.add_argument("--quick", action="store_true", help="try everything, measure nothing well")
    parser.add_argument(
        "--repetitions", type=int, default=3, metavar="N", help="of what is compared (3)"
    )
    parser.add_argument("--resume", action="store_true", help="skip what the output file has")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="JSON file to write or add to")
    arguments = parser.parse_args()
    if arguments.repetitions < 1:
        parser.error(f"--repetitions must be at least 1, got {arguments.repetitions}")
    return arguments


def _measure(name: str, console: Console, arguments: Namespace) -> Result:
    with Progress(console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(name, total=None)

        def tell(step: str, done: int, total: int) -> None:
            progress.update(task, description=f"{name}: {step}", completed=done, total=total)
            if not console.is_terminal:
                console.print(f"{name}: {step} ({done + 1} of {total})", highlight=False)

        repetitions = 1 if arguments.quick else arguments.repetitions
        bench = Bench(arguments.quick, repetitions, tell)
        measured = asyncio.run(_awaited(MEASURES[name](bench)))
        progress.update(task, description=name, completed=1, total=1)
    return measured


async def _awaited(measurement: Awaitable[Result]) -> Result:
    return await measurement


if __name__ == "__main__":
    sys.exit(main())
