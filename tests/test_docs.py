"""What the documents name exists: links, files and functions."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
# Where a document may leave out the beginning of a path.
PLACES = (ROOT, ROOT / "service", ROOT / "engines", ROOT / "service/speculation")
LINK = re.compile(r"\]\((?P<target>[^)#\s]+)")
CODE = re.compile(r"`([^`\n]+)`")
FILE = re.compile(r"[\w/.-]+\.(?:py|proto|md|toml)")
NAME = re.compile(r"\w+\.(?P<name>\w+)(?:\(\))?")


def ids(path):
    return str(path.relative_to(ROOT))


@cache
def definitions():
    """Return every name that the source defines, attributes included."""
    defined = re.compile(r"(?:def|class) (\w+)|^\s*(?:self\.)?(\w+)(?::| =)", re.MULTILINE)
    roots = (ROOT / name for name in ("service", "engines", "clients/python"))
    sources = (path for root in roots for path in root.rglob("*.py"))
    return {name for path in sources for pair in defined.findall(path.read_text()) for name in pair}


@pytest.mark.parametrize("document", DOCUMENTS, ids=ids)
def test_links_of_each_document_lead_somewhere(document):
    targets = {match["target"] for match in LINK.finditer(document.read_text())}
    local = {target for target in targets if "://" not in target}

    assert set() == {target for target in local if not (document.parent / target).exists()}


@pytest.mark.parametrize(
    "document", [ROOT / "ARCHITECTURE.md", *ROOT.glob("docs/decisions/0*.md")], ids=ids
)
def test_code_that_a_document_names_exists(document):
    """`file.py: Class.method`, `module.function` and `file.py` are held against the source."""
    for code in CODE.findall(document.read_text()):
        file, _, name = code.rpartition(": ")
        for path in FILE.findall(file or code):
            assert any((place / path).exists() for place in PLACES), code
        match = NAME.fullmatch(name)
        if match and not FILE.fullmatch(code):
            assert match["name"] in definitions(), code
