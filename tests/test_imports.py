"""Who may import what: one table, held against every import in the source."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = {"service": ROOT, "engines": ROOT, "outrider": ROOT / "clients/python"}

CONTRACT = (
    "service.errors",
    "service.generation",
    "service.speculation.capability",
    "service.speculation.completion",
    "service.speculation.contract",
    "service.speculation.cost",
    "service.speculation.width",
)
STANDARD = {*sys.stdlib_module_names, "_typeshed"}  # the latter exists for type checkers only
GRPC = ("google", "grpc", "grpc_health", "grpc_reflection", "grpc_status")

# What a package may import beside itself and the standard library. The longest name counts.
MAY_IMPORT: dict[str, tuple[str, ...]] = {
    "service": (),
    "service.errors": (),
    "service.generation": ("service.errors",),
    "service.speculation": ("service.errors", "service.generation"),
    "service.text": (
        "service.errors",
        "service.generation",
        "service.speculation.publication",
        "jinja2",
        "llguidance",  # grammars: what an output must match
        "tokenizers",
    ),
    "service.runtime": (
        "service.errors",
        "service.generation",
        "service.speculation",
        "service.text",
    ),
    "service.rpc": ("service", "outrider.v1", "uvloop", *GRPC),
    "service.commands": ("service", "outrider", "rich"),
    "service.__main__": ("service", "engines"),
    "engines": CONTRACT,
    "engines.bundle": (*CONTRACT, "numpy", "tokenizers"),
    "engines.build": (
        *CONTRACT,
        "engines.bundle",
        "gguf",
        "numpy",
        "onnx",
        "rich",
        "tokenizers",
    ),
    "engines.sampling": (*CONTRACT, "numpy"),
    "engines.proposers": (*CONTRACT, "engines.sampling", "numpy"),
    "engines.scripted": CONTRACT,
    "engines.onnx": (*CONTRACT, "engines.bundle", "engines.sampling", "numpy", "onnxruntime"),
    "outrider": ("google", "grpc"),
}

# Packages that hold only packages: a new one needs a row of its own.
ROOTS = ("service", "engines")

# Packages whose members know nothing of each other.
INDEPENDENT = ("engines.proposers",)

# The one module that joins service and engines, inside its functions.
COMPOSITION = "service.__main__"


def module_name(path: Path, root: Path) -> str:
    """Return the dotted name of a source file."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules() -> dict[str, Path]:
    """Return every module of the source by its name, generated ones excepted."""
    return {
        module_name(path, root): path
        for package, root in SOURCES.items()
        for path in sorted((root / package).rglob("*.py"))
        if not path.stem.endswith(("_pb2", "_pb2_grpc"))
    }


def imported_names(nodes: Iterator[ast.AST], module: str) -> set[str]:
    """Return what the import statements among the nodes name, outside the standard library."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively, line {node.lineno}"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in names if name.split(".")[0] not in STANDARD}


def is_within(name: str, package: str) -> bool:
    """Return whether a dotted name is the package or something in it."""
    return f"{name}.".startswith(f"{package}.")


def rule_of(module: str) -> str:
    """Return the longest name in the table that covers the module; a root covers only itself."""
    rules = [
        package
        for package in MAY_IMPORT
        if is_within(module, package) and (package not in ROOTS or module == package)
    ]
    assert rules, f"{module} has no row in MAY_IMPORT"
    return max(rules, key=len)


MODULES = modules()


@pytest.mark.parametrize("module", MODULES)
def test_imports_of_each_module_are_in_the_table(module: str) -> None:
    """A module imports its own package, the standard library, and what its row names."""
    rule = rule_of(module)
    names = imported_names(ast.walk(ast.parse(MODULES[module].read_text())), module)

    allowed = (rule, *MAY_IMPORT[rule])

    assert set() == {n for n in names if not any(is_within(n, package) for package in allowed)}


def test_imports_among_independent_members_are_absent() -> None:
    """Members of an independent package import no sibling."""
    for package in INDEPENDENT:
        for module, path in MODULES.items():
            if is_within(module, package):
                member = ".".join(module.split(".")[: package.count(".") + 2])
                names = imported_names(ast.walk(ast.parse(path.read_text())), module)
                inside = {n for n in names if is_within(n, package)}
                assert set() == {n for n in inside if not is_within(n, member)}, module


def test_imports_of_engines_in_the_service_are_lazy() -> None:
    """Loading the service loads no engine."""
    for module, path in MODULES.items():
        if is_within(module, "service"):
            at_load = imported_names(iter(ast.parse(path.read_text()).body), module)
            assert set() == {n for n in at_load if is_within(n, "engines")}, module


def test_engine_rows_name_the_composition_only() -> None:
    """Of the service's rows, only the composition's lets engines in."""
    assert {COMPOSITION} == {
        package
        for package, allowed in MAY_IMPORT.items()
        if is_within(package, "service") and any(is_within(a, "engines") for a in allowed)
    }


@pytest.mark.parametrize("package", ["service.generation", "service.speculation"])
def test_core_loads_without_any_installed_library(package: str) -> None:
    """The portable core runs on a bare interpreter."""
    names = [name for name in MODULES if is_within(name, package)]
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import {', '.join(names)}"

    result = subprocess.run(  # noqa: S603 - our own interpreter and source
        [sys.executable, "-I", "-S", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (0, "") == (result.returncode, result.stderr)
