"""A server as people start it, over the scripted engine."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SERVE = (sys.executable, "-m", "service", "serve", "--engine", "scripted", "--port", "0", "--json")


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """Where a freshly started server listens; it drains and exits with 0 afterwards."""
    path = os.pathsep.join((str(ROOT), str(ROOT / "clients/python")))
    environment = {**os.environ, "PYTHONPATH": path}
    with subprocess.Popen(  # noqa: S603 - the project's own command
        SERVE,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield str(json.loads(process.stdout.readline())["address"])
        finally:
            process.send_signal(signal.SIGTERM)
            assert 0 == process.wait(60)
