"""The tests notice the mistakes that would be easiest to make, and hardest to see."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.mutants.mutants import MUTANTS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
COPIED = ("service", "engines", "clients", "tests", "pyproject.toml")
ALL_PASSED, SOME_FAILED = 0, 1


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source and its tests."""
    tree: Path = tmp_path_factory.mktemp("mutants") / "original"
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tree / name)
    return tree


def run_tests(tree: Path, tests: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run tests of a tree in a process of their own, which leaves no compiled files behind."""
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": "", "COLUMNS": "200"}
    return subprocess.run(  # noqa: S603 - our own interpreter and tests
        command,
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def test_killers_pass_on_the_unchanged_source(original) -> None:
    killers = sorted({mutant.killer for mutant in MUTANTS})

    result = run_tests(original, killers)

    assert ALL_PASSED == result.returncode, result.stdout


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name.replace(" ", "-"))
def test_mutant_is_noticed_by_its_killer(mutant, original, tmp_path) -> None:
    """A test fails, not the import of the changed source."""
    tree = tmp_path / "changed"
    shutil.copytree(original, tree)
    mutant.apply(tree)

    result = run_tests(tree, [mutant.killer])

    assert SOME_FAILED == result.returncode, result.stdout
    assert f"FAILED {mutant.killer}" in result.stdout
