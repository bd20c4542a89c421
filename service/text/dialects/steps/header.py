"""The head of a call or a message: short, and read as a whole."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from service.text.dialects.steps.progress import Broken, Named, Next, Progress

MAX_CHARACTERS = 512
"""Longer than any head; what has no end by then is none."""


@dataclass(frozen=True, slots=True)
class Header:
    """Reads all before `until`, which `pattern` must match.

    Its group `name` is a call's name, and leads to `call`; `id` is what the model calls the call.
    Where there is no name, the group `channel` chooses the next step.
    """

    until: str
    pattern: re.Pattern[str]
    call: str
    channels: Mapping[str, str] = field(default_factory=dict)
    seen: str = ""

    def read(self, text: str) -> Progress:
        seen = self.seen + text
        end = seen.find(self.until, max(0, len(self.seen) - len(self.until)), MAX_CHARACTERS)
        if end < 0:
            if len(seen) < MAX_CHARACTERS:
                return Progress(replace(self, seen=seen))
            return Progress(Broken(f"expected {self.until!r}"))
        match = self.pattern.fullmatch(seen[:end])
        groups = match.groupdict() if match else {}
        rest = seen[end + len(self.until) :]
        if name := groups.get("name"):
            return Progress(Next(self.call, rest), (Named(name, groups.get("id") or ""),))
        if step := self.channels.get(groups.get("channel") or ""):
            return Progress(Next(step, rest))
        return Progress(Broken("the head of the call is not well-formed"))
