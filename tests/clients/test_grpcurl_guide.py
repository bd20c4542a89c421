"""Every command of the guides for grpcurl, run against a server as people start it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from outrider.v1 import generation_service_pb2, model_service_pb2, scheduler_service_pb2
from tests.clients.guide import ROOT, Command, commands

pytestmark = [
    pytest.mark.skipif(
        not (shutil.which("grpcurl") or shutil.which("go")),
        reason="neither grpcurl nor go, which could build it, is installed",
    ),
    # Building grpcurl takes minutes, the first time.
    pytest.mark.timeout(1200),
]

GUIDE, PARAMETERS = commands("grpcurl.md"), commands("parameters.md")


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


def test_guide_calls_every_method():
    scripts = "".join(command.script for command in GUIDE)
    files = (generation_service_pb2, model_service_pb2, scheduler_service_pb2)
    services = [s for file in files for s in file.DESCRIPTOR.services_by_name.values()]
    methods = {f"{s.full_name}/{method.name}" for s in services for method in s.methods}
    assert set() == {method for method in methods if method not in scripts}


@pytest.mark.parametrize("command", GUIDE + PARAMETERS, ids=lambda command: command.title)
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
    assert command.is_printed_by(ran.stdout), ran.stdout
