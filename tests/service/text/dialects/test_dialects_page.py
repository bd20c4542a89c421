import re
from pathlib import Path

from service.text.dialects.registry import DIALECTS

PAGE = Path(__file__).parents[4] / "docs" / "dialects.md"


def test_page_has_a_line_for_each_dialect():
    assert sorted(DIALECTS) == sorted(re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE))
