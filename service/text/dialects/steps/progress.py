"""What a step of a dialect is, and what it makes of a piece of text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from service.generation.events import ReasoningDelta, TextDelta

WHITE_SPACE = " \t\r\n"
"""What may stand between the parts of a dialect, as in JSON."""


@dataclass(frozen=True, slots=True)
class Named:
    """A call's name became known; `id` is the model's own, empty where it gave none."""

    name: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class Arguments:
    """A piece of a call's arguments, as JSON text."""

    fragment: str


@dataclass(frozen=True, slots=True)
class Complete:
    """A call has all that it needs."""


Finding = TextDelta | ReasoningDelta | Named | Arguments | Complete


@dataclass(frozen=True, slots=True)
class Next:
    """The step ended, and `step` reads the rest; `marker` is what ended it, if it was a text's."""

    step: str
    rest: str
    marker: str = ""


@dataclass(frozen=True, slots=True)
class Broken:
    """The text is not what the step reads."""

    reason: str


@dataclass(frozen=True, slots=True)
class Progress:
    """What a piece settled, in order, and how it goes on: with the same step, if with a step."""

    then: Step | Next | Broken
    found: tuple[Finding, ...] = ()


class Step(Protocol):
    """One step of a dialect, at some place inside it; an immutable value."""

    def read(self, text: str) -> Progress:
        """Return what the next piece of text, never empty, makes of the step."""


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """A text that grows at its end, in constant time, and shares its beginning with its copies."""

    last: str = ""
    before: Pieces | None = None

    def __add__(self, piece: str) -> Pieces:
        return Pieces(piece, self) if piece else self

    def __str__(self) -> str:
        pieces = []
        at: Pieces | None = self
        while at is not None:
            pieces.append(at.last)
            at = at.before
        return "".join(reversed(pieces))


NOTHING = Pieces()


def skip_white_space(text: str, start: int = 0) -> int:
    """Return where the white space that begins at `start` ends."""
    while start < len(text) and text[start] in WHITE_SPACE:
        start += 1
    return start
