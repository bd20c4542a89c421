"""The pieces that grammars of turns are made of, in Lark as llguidance reads it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from service.text.dialect import Spell, quoted

SPACE = "SPACE: /[ \\t\\r\\n]{1,8}/"
ANYTHING = "/(?s:.*)/"
ANY = f"ANY: {ANYTHING}"

_IN_LITERAL = re.compile(r"\\.|[/\n\r]", re.DOTALL)
_WRITTEN = {"/": "\\/", "\n": "\\n", "\r": "\\r", "\\\n": "\\n", "\\\r": "\\r"}

GAP = "SPACE?"
"""Optional white space, for rules."""


@dataclass(frozen=True, slots=True)
class FreeText:
    """A terminal for text in which none of some markers occurs, by the name of `terminal`.

    A lexer takes the longest text it can. Where a marker is ordinary letters, the text before it
    would swallow the first of them, so that text and marker must be one terminal.
    """

    terminal: str
    markers: tuple[str, ...]
    excluded: str = ""

    @property
    def definition(self) -> str:
        """Return the line that defines the terminal."""
        markers = " | ".join(map(quoted, self.markers))
        absent = f" & ~(ANY ({markers}) ANY)" if markers else ""
        return f"{self.terminal}: ANY{absent}{self.excluded}"

    def until(self, marker: str, spell: Spell) -> tuple[str, Sequence[str]]:
        """Return a rule's part for the text up to a marker and the marker, and its definitions."""
        spelled = spell(marker)
        if spelled != quoted(marker):
            return f"{self.terminal} {spelled}", ()
        joined = f"{self.terminal}_UNTIL"
        return joined, (f"{joined}: {self.terminal} {spelled}",)


def regex_literal(pattern: str) -> str:
    """Return a regular expression between slashes."""
    return "/" + _IN_LITERAL.sub(lambda found: _WRITTEN.get(found[0], found[0]), pattern) + "/"


def alternatives(rules: Sequence[str]) -> str:
    """Return a rule's part that is one of several."""
    return rules[0] if len(rules) == 1 else "(" + " | ".join(rules) + ")"


def grammar(start: str, *definitions: str) -> str:
    """Return the grammar whose `start` rule and further definitions these are."""
    return "\n".join((f"start: {start}", *dict.fromkeys(definitions), SPACE, ANY, ""))
