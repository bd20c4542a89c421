"""Every public report that concerns the core has its tests, and they name it."""

import ast
import re
from pathlib import Path

import pytest

from tests.cases.reports import CASES

ROOT = Path(__file__).parent


def test_map_covers_the_thirty_two_reports_about_the_core():
    assert 32 == len(CASES)


def test_every_test_of_a_case_is_in_the_map():
    """A test under cases/ that names a report by its name belongs to that report's entry."""
    mapped = {(case, test) for case, (_, tests) in CASES.items() for test in tests}
    for path in sorted((ROOT / "cases").glob("test_*.py")):
        for name in functions_of(path):
            if named := re.match(r"test_(b\d\d)_", name):
                assert (named[1].upper(), f"cases/{path.name}::{name}") in mapped


def functions_of(path: Path) -> dict[str, ast.AST]:
    """Return the functions of a file by name."""
    return {
        node.name: node
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


@pytest.mark.parametrize(
    ("case", "test"), [(case, test) for case, (_, tests) in CASES.items() for test in tests]
)
def test_test_of_a_case_exists_names_it_and_asserts_something(case, test):
    path, name = test.split("::")
    functions = functions_of(ROOT / path)
    assert name in functions
    assert case in (ast.get_docstring(functions[name]) or "")
    body = ast.walk(functions[name])
    assert any(isinstance(node, ast.Assert | ast.With | ast.AsyncWith) for node in body)
