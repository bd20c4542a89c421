"""The demonstration: its table, and a whole run over the scripted engine."""

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from outrider import Finished, FinishReason, Round, Token, TokenSource
from outrider.v1.statistics_pb2 import RequestStatistics
from service.commands.transcript import Transcript
from tests.service.commands.process import environment

SCRIPT = Path(__file__).parents[2] / "scripts" / "demo.py"


def loaded():
    spec = spec_from_file_location("demo", SCRIPT)
    module = module_from_spec(spec)
    sys.modules["demo"] = module
    spec.loader.exec_module(module)
    return module


demo = loaded()
TASK = demo.Task("open", "Tell me.")


def answer(seconds, tokens, **statistics):
    """Return an answer whose tokens after the first took so many seconds."""
    transcript = Transcript(started=0.0)
    for now, token in zip((1.0, *(1.0 + seconds for _ in tokens[1:])), tokens, strict=True):
        transcript.take(Round(0, (Token(token, TokenSource.PLAIN),), 0, 0), now)
    counted = RequestStatistics(**statistics)
    transcript.take(Finished(FinishReason.EOS, None, 3, len(tokens), counted), 9.0)
    return transcript


def comparison(speculative=(1, 2, 3), plain=(1, 2, 3)):
    counted = {"rounds": 2, "judged_tokens": 4, "acceptance_rate": 0.5, "acceptance_length": 1.5}
    fast = tuple(answer(seconds, speculative, **counted) for seconds in (0.5, 4.0, 1.0))
    slow = tuple(answer(seconds, plain, plain_steps=2) for seconds in (2.0, 2.0, 8.0))
    return demo.Comparison(TASK, fast, slow)


def rows(*comparisons):
    console = Console(file=StringIO(), width=80)
    console.print(demo.comparison_table(comparisons))
    return [line.split() for line in console.file.getvalue().splitlines()]


def test_speed_up_is_the_ratio_of_the_medians():
    assert 2.0 == comparison().speed_up


def test_table_shows_counts_medians_speed_up_and_identity():
    shown = rows(comparison())

    assert ["open", "plain", "3", "1.0", "none", "none", "0", "2"] in shown
    assert ["open", "speculative", "3", "2.0", "50", "%", "1.50", "2", "0", "2.00", "yes"] in shown


def test_table_says_where_outputs_differ():
    differing = comparison(plain=(1, 2, 4))

    assert not differing.is_identical
    assert "NO" == rows(differing)[-1][-1]


def test_table_fits_eighty_columns():
    assert not any("…" in cell for row in rows(comparison()) for cell in row)


def test_answers_of_one_token_have_no_speed_up():
    assert comparison(speculative=(1,), plain=(1,)).speed_up is None


def run(*argv):
    return subprocess.run(  # noqa: S603 - our own interpreter and script
        [sys.executable, SCRIPT, *argv],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_run_streams_compares_and_ends_with_status_zero():
    ended = run("--repetitions", "1", "--max-tokens", "40", "--", "--engine", "scripted")

    assert 0 == ended.returncode
    assert "You wrote: " in ended.stdout
    assert ["yes", "yes"] == [
        line.split()[-1] for line in ended.stdout.splitlines() if " speculative " in line
    ]


@pytest.mark.parametrize("flags", [("--engine", "warp"), ("--bundle", "/none")])
def test_run_without_a_server_ends_with_status_one(flags):
    ended = run("--", *flags)

    assert (1, "") == (ended.returncode, ended.stdout)
    assert "demo: the server did not start" in ended.stderr
