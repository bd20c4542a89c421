"""Every example of the client's guide, run against a server as people start it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import outrider

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/client.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```\n", GUIDE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_example_runs_and_prints(example: str, address: str):
    ran = subprocess.run(  # noqa: S603 - the guide's own example
        [sys.executable, "-W", "error", "-c", example.replace("localhost:50051", address)],
        check=False,
        cwd=ROOT / "clients/python",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (0, "") == (ran.returncode, ran.stderr)
    assert ran.stdout or "break" in example


def test_guide_names_every_error():
    named = set(re.findall(r"^\| `(\w+)` \|", GUIDE, re.MULTILINE))
    assert named == {kind.__name__ for kind in outrider.OutriderError.__subclasses__()}
