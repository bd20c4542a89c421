"""Every command of the grpcurl guide, run against a server as people start it."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs/grpcurl.md"
BLOCK = re.compile(
    r"^```sh(?: exit=(?P<exit>\d+))?\n(?P<command>.*?)^```\n"
    r"(?:```(?:text|json)\n(?P<output>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
LEFT_OUT = "…"

pytestmark = [
    pytest.mark.skipif(
        not (shutil.which("grpcurl") or shutil.which("go")),
        reason="neither grpcurl nor go, which could build it, is installed",
    ),
    # Building grpcurl takes minutes, the first time.
    pytest.mark.timeout(1200),
]


@dataclass(frozen=True)
class Command:
    """A command of the guide, how it ends, and lines that it prints in this order."""

    script: str
    status: int
    lines: tuple[str, ...]


def commands() -> list[Command]:
    return [
        Command(
            script=block["command"],
            status=int(block["exit"] or 0),
            lines=tuple(
                line.strip()
                for line in (block["output"] or "").splitlines()
                if line.strip() != LEFT_OUT
            ),
        )
        for block in BLOCK.finditer(GUIDE.read_text())
    ]


def is_in_order(expected: tuple[str, ...], printed: str) -> bool:
    """Whether each expected text begins a printed line, in the order given."""
    lines = iter(line.strip() for line in printed.splitlines())
    return all(any(line.startswith(text) for line in lines) for text in expected)


@pytest.fixture(scope="session")
def grpcurl() -> Path:
    """The installed grpcurl, or one that is built now and kept."""
    installed = shutil.which("grpcurl")
    if installed is not None:
        return Path(installed)
    built = subprocess.run(  # noqa: S603 - the project's own script
        [ROOT / "scripts/install-grpcurl"], check=True, stdout=subprocess.PIPE, text=True
    )
    return Path(built.stdout.strip())


def title(command: Command) -> str:
    return command.script.split("localhost:50051")[-1].split("\n")[0].strip()


COMMANDS = commands()


def test_guide_calls_every_method():
    from outrider.v1 import (  # noqa: PLC0415 - only here
        generation_service_pb2,
        model_service_pb2,
        scheduler_service_pb2,
    )

    scripts = "".join(command.script for command in COMMANDS)
    files = (generation_service_pb2, model_service_pb2, scheduler_service_pb2)
    services = [s for file in files for s in file.DESCRIPTOR.services_by_name.values()]
    methods = {f"{s.full_name}/{method.name}" for s in services for method in s.methods}
    assert set() == {method for method in methods if method not in scripts}


@pytest.mark.parametrize("command", COMMANDS, ids=title)
def test_command_does_what_the_guide_says(
    command: Command, grpcurl: Path, address: str, tmp_path: Path
):
    path = os.pathsep.join((str(grpcurl.parent), os.environ["PATH"]))
    ran = subprocess.run(  # noqa: S603 - the guide's own command
        ["/bin/bash", "-c", command.script.replace("localhost:50051", address)],
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    assert command.status == ran.returncode, ran.stdout
    assert is_in_order(command.lines, ran.stdout), ran.stdout
