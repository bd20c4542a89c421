"""Run the checks one after the other, show what they found, and fail if a claim does not hold."""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console

from benchmarks.machine import circumstances
from exactness.result import Result
from exactness.suite import ENGINES, Check, short_checks
from exactness.table import show


def main() -> int:
    """Return 0 if every claim holds, else 1."""
    arguments = _arguments()
    console, found, started = Console(stderr=True), circumstances(), time.monotonic()
    with TemporaryDirectory(prefix="outrider-exactness-") as folder:
        results = list(_run(_wanted(arguments, Path(folder)), console))
    show(Console(), results)
    if arguments.json is not None:
        rows = [{**asdict(result), "holds": result.holds} for result in results]
        seconds = round(time.monotonic() - started, 1)
        document = {**found, "short": arguments.short, "seconds": seconds, "results": rows}
        arguments.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return int(not all(result.holds for result in results))


def _arguments() -> Namespace:
    parser = ArgumentParser(prog="python -m exactness", description=__doc__)
    parser.add_argument(
        "--short", action="store_true", help="a part of most checks, without weights"
    )
    parser.add_argument(
        "--engine", action="append", choices=ENGINES, help="only this one; repeatable"
    )
    parser.add_argument(
        "--model", type=Path, metavar="DIR", help="a bundle instead of the default model's"
    )
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the results there, too")
    return parser.parse_args()


def _wanted(arguments: Namespace, folder: Path) -> Iterator[Check]:
    if arguments.short:
        return short_checks()
    engines = arguments.engine or ENGINES
    return chain.from_iterable(ENGINES[name](folder, arguments.model) for name in engines)


def _run(checks: Iterator[Check], console: Console) -> Iterator[Result]:
    for check in checks:
        started = time.monotonic()
        result = _result(check)
        verdict = "holds" if result.holds else "FAILS"
        seconds = time.monotonic() - started
        line = f"{result.check}, {result.engine}: {verdict} ({seconds:.0f} s)"
        console.print(line, highlight=False)
        yield result


def _result(check: Check) -> Result:
    """Return what a check found; one that cannot be carried out has failed."""
    try:
        return check()
    except Exception as error:  # noqa: BLE001 - the others are still to be heard
        name = getattr(check.func, "__name__", "check").removeprefix("check_").replace("_", " ")
        return Result(name, "", 0, "", (f"{type(error).__name__}: {error}",))


if __name__ == "__main__":
    sys.exit(main())
