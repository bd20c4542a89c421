"""The command as a process of its own, bounded in time and ended whatever happens."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

COMMAND = (sys.executable, "-m", "service")
SECONDS = 60


def environment() -> dict[str, str]:
    """Return this process's environment without settings of the server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("OUTRIDER_")}


def outrider(*argv: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run(  # noqa: S603 - our own interpreter and source
        [*COMMAND, *argv],
        input=stdin,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


def outrider_in_shell(line: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a shell's line in which `outrider` is the command."""
    script = f'outrider() {{ "$PYTHON" -m service "$@"; }}; {line}'
    return subprocess.run(  # noqa: S603 - our own interpreter and source
        ["/bin/bash", "-c", script],
        env=environment() | {"PYTHON": sys.executable} | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


class Serving:
    """A server process that takes requests; `address` is where."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        ready = json.loads(process.stdout.readline())
        self.address = ready["address"]
        self.models = ready["models"]

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to end and return its status."""
        self.process.send_signal(number)
        return self.process.wait(SECONDS)


@contextmanager
def serving(*argv: str) -> Iterator[Serving]:
    """Serve the scripted engine on a free port."""
    command = [*COMMAND, "serve", "--engine", "scripted", "--port", "0", "--json", *argv]
    with subprocess.Popen(  # noqa: S603 - our own interpreter and source
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            yield Serving(process)
        finally:
            process.kill()
