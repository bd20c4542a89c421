"""Progress: lines where nobody watches, bars on a terminal."""

import io

from engines.build.progress import progress_on


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_off_a_terminal_writes_a_line_each_quarter() -> None:
    out = io.StringIO()

    with progress_on(out) as progress:
        progress.stage("layers", 8)
        for _ in range(8):
            progress.advance()

    expected = ["layers", "layers: 25 %", "layers: 50 %", "layers: 75 %", "layers: 100 %"]
    assert expected == out.getvalue().splitlines()


def test_progress_on_a_terminal_draws_every_stage() -> None:
    out = Terminal()

    with progress_on(out) as progress:
        progress.stage("first", 2)
        progress.advance(2)
        progress.stage("second", 1)
        progress.advance()

    assert "first" in out.getvalue()
    assert "2/2" in out.getvalue()
    assert "second" in out.getvalue()
