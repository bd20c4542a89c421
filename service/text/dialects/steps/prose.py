"""Text or reasoning, up to the marker that ends it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from service.generation.events import ReasoningDelta, TextDelta
from service.text.automaton import ROOT, TextAutomaton
from service.text.dialects.steps.progress import (
    NOTHING,
    WHITE_SPACE,
    Next,
    Pieces,
    Progress,
)

Delta = TextDelta | ReasoningDelta


@dataclass(frozen=True, slots=True)
class Prose:
    """Passes on what is written until one of `markers`, each with the step that it leads to.

    White space beside a marker belongs to the marker, unless the dialect frames its texts exactly.
    Held back are the beginning of what may become a marker, at `node`, and the white space before
    it, which a marker would take along.

    `is_fresh` says that nothing but white space has followed the marker in front.
    """

    delta: type[TextDelta | ReasoningDelta]
    markers: Mapping[str, str]
    is_exact: bool = False
    is_fresh: bool = True
    white: Pieces = NOTHING
    node: int = ROOT

    def read(self, text: str) -> Progress:
        automaton = _automaton(tuple(self.markers))
        held = len(automaton.held(self.node))
        scan = automaton.scan(self.node, text)
        prose, found = self._release(scan.released)
        if scan.match is None:
            at_rest = scan.node == self.node
            return Progress(prose if at_rest else replace(prose, node=scan.node), found)
        marker, step = list(self.markers.items())[scan.match]
        rest = text[len(scan.released) + len(marker) - held :]
        return Progress(Next(step, rest, str(prose.white + marker)), found)

    def settle(self) -> tuple[Prose, tuple[Delta, ...]]:
        """Release what may no longer become a marker, since a marker of its own follows."""
        prose, found = self._release(_automaton(tuple(self.markers)).held(self.node))
        return replace(prose, node=ROOT), found

    def finish(self) -> tuple[Delta, ...]:
        """Release all that is held back: nothing follows."""
        text = str(self.white + _automaton(tuple(self.markers)).held(self.node))
        return (self.delta(text),) if text else ()

    def _release(self, text: str) -> tuple[Prose, tuple[Delta, ...]]:
        """Pass on a text but for the white space at its end, and at its start after a marker."""
        if self.is_exact:
            return self, (self.delta(text),) if text else ()
        kept = text.rstrip(WHITE_SPACE)
        if not kept:
            return self if self.is_fresh else replace(self, white=self.white + text), ()
        passed = kept.lstrip(WHITE_SPACE) if self.is_fresh else str(self.white) + kept
        white = NOTHING + text[len(kept) :]
        if not self.is_fresh and white is self.white:
            return self, (self.delta(passed),)
        return replace(self, is_fresh=False, white=white), (self.delta(passed),)


@cache
def _automaton(markers: tuple[str, ...]) -> TextAutomaton:
    return TextAutomaton(markers)
