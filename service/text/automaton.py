"""Several texts sought at once in a text that arrives in pieces."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

ROOT = 0


@dataclass(frozen=True, slots=True)
class Scan:
    """What one piece settled.

    `released` can no longer be part of a match that is to come. `node` is where
    the next piece goes on. `match` is the index of the text that was found; it
    begins right after `released`, and nothing behind it was looked at.
    """

    released: str
    node: int
    match: int | None = None


@dataclass(slots=True)
class _Node:
    """A prefix of some text: the first `depth` characters of text `owner`."""

    owner: int
    depth: int
    edges: dict[str, int] = field(default_factory=dict)
    fallback: int = ROOT
    match: int | None = None


class TextAutomaton:
    """Finds the first of several texts to be complete, and the longest of those at one place.

    What must be held back is always a prefix of one of the texts, so a node of
    the automaton is the whole state of a search: an integer, free to copy.
    Reading takes constant time a character, however long the texts are.

    Source: Aho and Corasick 1975, doi:10.1145/360825.360855.
    """

    __slots__ = ("_nodes", "_texts")

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = tuple(texts)
        self._nodes = [_Node(owner=0, depth=0)]
        for index, text in enumerate(self._texts):
            self._insert(index, text)
        self._link()

    def held(self, node: int) -> str:
        """Return the text held back at a node: the longest that may still begin a match."""
        at = self._nodes[node]
        return self._texts[at.owner][: at.depth] if at.depth else ""

    def scan(self, node: int, piece: str, *, muted: bool = False) -> Scan:
        """Read the next piece from a node on, up to the first match; all matches, if `muted`."""
        if not self._texts:
            return Scan(piece, ROOT)
        start, read = self._nodes[node], 0
        for read, character in enumerate(piece, 1):
            node = self._next(node, character)
            match = self._nodes[node].match
            if match is not None and not muted:
                before = start.depth + read - len(self._texts[match])
                return Scan(self._first(start, piece, before), ROOT, match)
        settled = start.depth + read - self._nodes[node].depth
        return Scan(self._first(start, piece, settled), node)

    def _first(self, start: _Node, piece: str, length: int) -> str:
        """Return the first characters of what was held at `start` followed by `piece`."""
        if length <= start.depth:
            return self._texts[start.owner][:length] if length else ""
        return self._texts[start.owner][: start.depth] + piece[: length - start.depth]

    def _next(self, node: int, character: str) -> int:
        while (following := self._nodes[node].edges.get(character)) is None:
            if node == ROOT:
                return ROOT
            node = self._nodes[node].fallback
        return following

    def _insert(self, index: int, text: str) -> None:
        node = ROOT
        for depth, character in enumerate(text, 1):
            edges = self._nodes[node].edges
            if character not in edges:
                edges[character] = len(self._nodes)
                self._nodes.append(_Node(owner=index, depth=depth))
            node = edges[character]
        if self._nodes[node].match is None:
            self._nodes[node].match = index

    def _link(self) -> None:
        """Point each node at its longest proper suffix, shallow nodes first."""
        waiting = deque(self._nodes[ROOT].edges.values())
        while waiting:
            node = self._nodes[waiting.popleft()]
            for character, child in node.edges.items():
                fallback = self._next(node.fallback, character)
                self._nodes[child].fallback = fallback
                if self._nodes[child].match is None:
                    self._nodes[child].match = self._nodes[fallback].match
                waiting.append(child)
