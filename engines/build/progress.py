"""Progress of a build: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)


class BuildProgress(Protocol):
    """Is told what a build is doing."""

    def stage(self, title: str, total: int, /) -> None:
        """Begin a stage of `total` units; the previous stage is complete."""
        ...

    def advance(self, units: int = 1, /) -> None:
        """Count units of the current stage as done."""
        ...


class SilentProgress:
    """Shows nothing."""

    def stage(self, _title: str, _total: int) -> None:
        return

    def advance(self, _units: int = 1) -> None:
        return


class LineProgress:
    """Writes one line a stage, and one at each further quarter of it."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._title = ""
        self._total = self._done = 0

    def stage(self, title: str, total: int) -> None:
        self._title, self._total, self._done = title, total, 0
        self._write(title)

    def advance(self, units: int = 1) -> None:
        before = 4 * self._done // self._total
        self._done += units
        after = 4 * self._done // self._total
        if after > before:
            self._write(f"{self._title}: {25 * after} %")

    def _write(self, line: str) -> None:
        print(line, file=self._out, flush=True)


class BarProgress:
    """Draws one bar a stage on a terminal."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._task = TaskID(0)

    def stage(self, title: str, total: int) -> None:
        self._task = self._bars.add_task(title, total=total)

    def advance(self, units: int = 1) -> None:
        self._bars.advance(self._task, units)


@contextmanager
def progress_on(out: TextIO) -> Iterator[BuildProgress]:
    """Show progress on `out` in the form that suits it."""
    if not out.isatty():
        yield LineProgress(out)
        return
    columns = TextColumn("{task.description:<28}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, TimeElapsedColumn(), console=Console(file=out)) as bars:
        yield BarProgress(bars)
