"""Exact texts, after any white space."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from service.text.dialects.steps.progress import Broken, Next, Progress, skip_white_space


@dataclass(frozen=True, slots=True)
class OneOf:
    """Reads one of several texts, none the beginning of another, each with what follows it."""

    choices: Mapping[str, str]
    seen: str = ""

    def read(self, text: str) -> Progress:
        seen = self.seen + text[0 if self.seen else skip_white_space(text) :]
        for choice, step in self.choices.items():
            if seen.startswith(choice):
                return Progress(Next(step, seen[len(choice) :]))
        if any(choice.startswith(seen) for choice in self.choices):
            return Progress(replace(self, seen=seen))
        return Progress(Broken("expected " + " or ".join(map(repr, self.choices))))


@dataclass(frozen=True, slots=True)
class Peek:
    """Chooses the next step by the first character, which that step reads.

    Without `otherwise`, other characters are no part of the dialect.
    """

    choices: Mapping[str, str]
    otherwise: str = ""

    def read(self, text: str) -> Progress:
        rest = text[skip_white_space(text) :]
        if not rest:
            return Progress(self)
        if step := self.choices.get(rest[0], self.otherwise):
            return Progress(Next(step, rest))
        return Progress(Broken("expected " + " or ".join(map(repr, self.choices))))
