"""Results on the terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.results import Better, Figure, Result


def show(console: Console, results: Mapping[str, Result]) -> None:
    """Print a row for each figure."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("what", no_wrap=True)
    for column in ("value", "goal", ""):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("outputs")
    for result in results.values():
        for index, figure in enumerate(result.figures):
            outputs = "" if index else _outputs(result.identical)
            table.add_row(figure.name, _value(figure), _goal(figure), _verdict(figure), outputs)
        table.add_section()
    console.print(table)


def _value(figure: Figure) -> str:
    digits = 2 if abs(figure.value) < 100 else 0
    return f"{figure.value:.{digits}f} {figure.unit}".rstrip()


def _goal(figure: Figure) -> str:
    if figure.goal is None:
        return ""
    return f"{'≥' if figure.better is Better.HIGHER else '≤'} {figure.goal:g}"


def _verdict(figure: Figure) -> str:
    if figure.reached is None:
        return ""
    return "[green]reached[/]" if figure.reached else "[red]missed[/]"


def _outputs(identical: bool | None) -> str:  # noqa: FBT001 - it is a value, not a switch
    if identical is None:
        return ""
    return "same" if identical else "[red]differ[/]"
