"""Results on the terminal, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from exactness.result import Result

MOST_FAILURES = 5


def show(console: Console, results: Sequence[Result]) -> None:
    """Print a row for each result, and what failed below."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("check")
    table.add_column("engine")
    table.add_column("cases", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("worst")
    for result in results:
        verdict = "[green]holds[/]" if result.holds else "[red]FAILS[/]"
        table.add_row(result.check, result.engine, f"{result.cases:,}", verdict, result.worst)
    console.print(table)
    for result in results:
        for failure in result.failures[:MOST_FAILURES]:
            line = f"{result.check}, {result.engine}: {failure}"
            console.print(line, style="red", markup=False, highlight=False)
        if len(result.failures) > MOST_FAILURES:
            console.print(f"… and {len(result.failures) - MOST_FAILURES} more", style="red")
