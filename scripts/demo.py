"""Show what speculation does: stream prompts with and without it, and compare.

Starts a server of its own on a free loopback port, asks it over gRPC, and stops
it. Ends with status 0 if both modes gave the same tokens, else 1.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from outrider import Chat, Client, Message, Mode, OutriderError, Round
from service.commands.transcript import Transcript, acceptance_length, acceptance_rate, rate

ROOT = Path(__file__).resolve().parents[1]
STOP_SECONDS = 40
WARM_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Task:
    """A prompt with the name that the table gives it."""

    name: str
    prompt: str


TASKS = (
    Task("open", "Describe a walk through an old harbour town on a windy morning."),
    Task(
        "copying",
        "Write this notice again, word for word, but replace Monday by Tuesday.\n\n"
        "The library on Harbour Street will be closed on Monday, because new shelves are being "
        "put up in the reading room. Books that are due on Monday may be returned one day later "
        "without a fee. The letter box beside the main door stays open, and the children's "
        "corner will move to the first floor until the work is done. If you have ordered a book, "
        "you can collect it at the side entrance on Monday afternoon.",
    ),
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The answers to one task, as often with speculation as without."""

    task: Task
    speculative: tuple[Transcript, ...]
    plain: tuple[Transcript, ...]

    @property
    def is_identical(self) -> bool:
        """Whether every answer has the same tokens."""
        return len({answer.token_ids for answer in (*self.speculative, *self.plain)}) == 1

    @property
    def speed_up(self) -> float | None:
        """Return by how much speculation is faster, from the medians."""
        speculative, plain = median_rate(self.speculative), median_rate(self.plain)
        return None if speculative is None or plain is None else speculative / plain


def median_rate(answers: Sequence[Transcript]) -> float | None:
    """Return the median rate of the answers that have one."""
    rates = [each for answer in answers if (each := answer.tokens_per_second) is not None]
    return median(rates) if rates else None


def comparison_table(comparisons: Sequence[Comparison]) -> Table:
    """Return the table that ends the demonstration; it fits 80 columns."""
    table = Table(box=None, padding=(0, 1), collapse_padding=True, pad_edge=False)
    table.add_column("prompt")
    table.add_column("mode")
    for name in (
        "tokens",
        "tokens/s",
        "accepted",
        "tokens\n/round",
        "rounds",
        "plain\nsteps",
        "speed\n-up",
        "same\noutput",
    ):
        table.add_column(name, justify="right")
    for comparison in comparisons:
        speed_up = comparison.speed_up
        table.add_row(comparison.task.name, "plain", *_cells(comparison.plain))
        table.add_row(
            comparison.task.name,
            "speculative",
            *_cells(comparison.speculative),
            "none" if speed_up is None else f"{speed_up:.2f}",
            "yes" if comparison.is_identical else "NO",
        )
    return table


def _cells(answers: Sequence[Transcript]) -> tuple[str, ...]:
    """Return the counts, which are the same for every greedy answer, and the median rate."""
    last = answers[-1]
    counted = None if last.finished is None else last.finished.statistics
    return (
        str(len(last.tokens)),
        rate(median_rate(answers)),
        acceptance_rate(last),
        acceptance_length(last),
        "none" if counted is None else str(counted.rounds),
        "none" if counted is None else str(counted.plain_steps),
    )


@contextmanager
def running_server(flags: Sequence[str]) -> Iterator[str]:
    """Run a server on a free loopback port, and yield its address."""
    command = [sys.executable, "-m", "service", "serve", "--port", "0", "--json"]
    command += ["--log-level", "warning", *flags]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        try:
            ready = server.stdout.readline() if server.stdout else ""
            if not ready:
                raise SystemExit("demo: the server did not start")
            yield json.loads(ready)["address"]
        finally:
            _stop(server)


def _stop(server: subprocess.Popen[str]) -> None:
    server.terminate()
    try:
        server.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()


@dataclass(frozen=True, slots=True)
class Demonstration:
    """Asks one server, and shows what it answers."""

    client: Client
    console: Console
    max_tokens: int

    def warm_up(self) -> None:
        """Let the server touch everything once, so that the first answer is not the slowest."""
        for task in TASKS:
            for mode in ("auto", "none"):
                prompt = Chat([Message("user", task.prompt)])
                self.client.complete(prompt, speculation=mode, max_new_tokens=WARM_TOKENS)

    def compare(self, task: Task, repetitions: int) -> Comparison:
        """Answer a task in both modes by turns; the first speculative answer is shown."""
        self.console.rule(f"[bold]{task.name}")
        self.console.print(task.prompt, style="dim", markup=False, highlight=False)
        self.console.print()
        speculative: list[Transcript] = []
        plain: list[Transcript] = []
        for repetition in range(repetitions):
            speculative.append(self._answer(task, "auto", is_shown=repetition == 0))
            self._report("speculative", speculative[-1])
            plain.append(self._answer(task, "none", is_shown=False))
            self._report("plain", plain[-1])
        return Comparison(task, tuple(speculative), tuple(plain))

    def _answer(self, task: Task, mode: Mode, *, is_shown: bool) -> Transcript:
        transcript = Transcript(time.monotonic())
        prompt = Chat([Message("user", task.prompt)])
        style = ""
        for event in self.client.stream(
            prompt, speculation=mode, temperature=0.0, max_new_tokens=self.max_tokens
        ):
            if isinstance(event, Round):
                style = "green" if event.accepted else ""
            text = transcript.take(event, time.monotonic())
            if is_shown:
                self.console.out(text, end="", style=style, highlight=False)
        if is_shown:
            self.console.print("\n")
        return transcript

    def _report(self, mode: str, answer: Transcript) -> None:
        tokens = len(answer.tokens)
        line = f"{mode:<12} {tokens} tokens, {rate(answer.tokens_per_second)} tokens/s"
        self.console.print(line, style="dim", highlight=False)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demonstration; return its exit status."""
    arguments = _arguments(argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    console = Console()
    try:
        with running_server(arguments.serve) as address, Client(address) as client:
            demonstration = Demonstration(client, console, arguments.max_tokens)
            demonstration.warm_up()
            console.print("green: text of rounds in which proposals were accepted", style="green")
            comparisons = [demonstration.compare(task, arguments.repetitions) for task in TASKS]
    except OutriderError as failed:
        print(f"demo: {failed}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    console.print()
    console.print(comparison_table(comparisons))
    console.print(
        f"\ntokens/s: the median of {arguments.repetitions}, after the first token",
        style="dim",
        highlight=False,
    )
    return 0 if all(comparison.is_identical for comparison in comparisons) else 1


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="demo", description=__doc__)
    parser.add_argument("--max-tokens", type=int, default=128, metavar="N")
    parser.add_argument(
        "--repetitions", type=int, default=3, metavar="N", help="at least 2 is fair"
    )
    parser.add_argument("serve", nargs="*", help="after --, flags of outrider serve")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
