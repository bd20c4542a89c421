"""The arguments of a call whose name is known: one JSON object, passed on as it is written."""

from __future__ import annotations

from dataclasses import dataclass, replace

from service.text.dialects.steps.json_value import AN_OBJECT, JsonValue
from service.text.dialects.steps.progress import (
    Arguments,
    Broken,
    Complete,
    Next,
    Progress,
    skip_white_space,
)


@dataclass(frozen=True, slots=True)
class JsonArguments:
    """Reads one JSON object after any white space; `then` reads on behind its last brace."""

    then: str
    value: JsonValue | None = None

    def read(self, text: str) -> Progress:
        if self.value is not None:
            return self._go_on(self.value, text, 0)
        start = skip_white_space(text)
        if start == len(text):
            return Progress(self)
        if text[start] != "{":
            return Progress(Broken("the arguments are not a JSON object"))
        return self._go_on(AN_OBJECT, text[start:], 1)

    def _go_on(self, value: JsonValue, text: str, start: int) -> Progress:
        value, end = value.read(text, start)
        fragment = (Arguments(text[:end]),) if end else ()
        if value.is_broken:
            return Progress(Broken("the arguments are not JSON"), fragment)
        if value.is_complete:
            return Progress(Next(self.then, text[end:]), (*fragment, Complete()))
        return Progress(replace(self, value=value), fragment)
