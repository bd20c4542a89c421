"""Commands whose standard streams are closed, cut short or of a poor encoding."""

import pytest

from tests.service.commands.process import outrider_in_shell

GENERATE = "outrider generate 'Hello you' --engine scripted --max-tokens 16"


@pytest.mark.parametrize(
    "line",
    [
        f"{GENERATE} | head -c3",
        f"{GENERATE} --json | true",
        "outrider serve --engine scripted --port 0 | true",
    ],
)
def test_output_that_nobody_reads_ends_the_command_quietly(line):
    """As a shell reports a process that SIGPIPE ended."""
    ended = outrider_in_shell(f"{line}; exit ${{PIPESTATUS[0]}}")

    assert (141, "") == (ended.returncode, ended.stderr)


def test_closed_standard_input_is_refused_in_one_line():
    ended = outrider_in_shell("outrider generate - --engine scripted <&-")

    assert (2, 1) == (ended.returncode, len(ended.stderr.splitlines()))
    assert "standard input is closed" in ended.stderr


def test_closed_standard_output_hurts_nothing():
    """The server that answers must not take its number for a socket."""
    ended = outrider_in_shell(f"{GENERATE} >&-")

    assert (0, "") == (ended.returncode, ended.stderr)


def test_character_that_the_output_cannot_encode_is_escaped():
    line = "outrider generate 'na\u00efve' --engine scripted --max-tokens 20"
    ended = outrider_in_shell(line, PYTHONIOENCODING="ascii")

    assert (0, "") == (ended.returncode, ended.stderr)
    assert "You wrote: na\\xefve" in ended.stdout
