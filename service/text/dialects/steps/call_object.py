"""A call as one JSON object that names the tool and holds its arguments."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Literal

from service.text.dialects.steps.json_value import A_STRING, AN_OBJECT, JsonValue
from service.text.dialects.steps.progress import (
    NOTHING,
    Arguments,
    Broken,
    Complete,
    Finding,
    Named,
    Next,
    Pieces,
    Progress,
    skip_white_space,
)

Place = Literal["open", "first key", "key", "colon", "value", "comma"]


@dataclass(frozen=True, slots=True)
class CallObject:
    """Reads `{"name": …, "arguments": {…}}`, whose members may come in any order.

    `parameters` is another word for `arguments`. The arguments are passed on as they are written,
    from where the name is known; an `id` counts if it stands before that. `then` reads on behind
    the last brace.

    `inside` is the place in a key or a value, `written` its text where that is still needed.
    `known` are the members that have been read, of those that count.
    """

    then: str
    place: Place = "open"
    role: str = ""
    inside: JsonValue | None = None
    written: Pieces = NOTHING
    known: tuple[tuple[str, str], ...] = ()

    @property
    def is_named(self) -> bool:
        """Whether the name has been told, after which arguments need not wait."""
        return self.has("name")

    def has(self, role: str) -> bool:
        """Return whether a member has been read."""
        return any(role == name for name, _ in self.known)

    def read(self, text: str) -> Progress:
        call: CallObject | Next | Broken = self
        found: tuple[Finding, ...] = ()
        at = 0
        while at < len(text) and isinstance(call, CallObject):
            if call.inside is not None:
                call, at, more = _read_inside(call, call.inside, text, at)
                found += more
            elif (at := skip_white_space(text, at)) < len(text):
                call, at = _read_between(call, text, at)
        if isinstance(call, Next):
            return Progress(replace(call, rest=text[at:]), (*found, Complete()))
        return Progress(call, found)


_ROLES = {"name": "name", "id": "id", "arguments": "arguments", "parameters": "arguments"}
"""What the members mean that count; others are read over."""
_STARTS = {"name": {'"': A_STRING}, "id": {'"': A_STRING}, "arguments": {"{": AN_OBJECT}}
"""What the values of those must be."""
_EDGES: dict[Place, dict[str, tuple[Place, JsonValue | None]]] = {
    "open": {"{": ("first key", None)},
    "first key": {'"': ("key", A_STRING)},
    "key": {'"': ("key", A_STRING)},
    "colon": {":": ("value", None)},
    "comma": {",": ("key", None)},
}
"""Where a character leads that stands between keys and values, and into what."""


def _read_between(call: CallObject, text: str, at: int) -> tuple[CallObject | Next | Broken, int]:
    """Read one character between keys and values."""
    if call.place == "value":
        return _begin_value(call, text, at)
    if text[at] == "}" and call.place == "comma":
        is_whole = call.is_named and call.has("arguments")
        return Next(call.then, "") if is_whole else Broken("the call lacks a member"), at + 1
    edge = _EDGES[call.place].get(text[at])
    if edge is None:
        return Broken("the call is not a JSON object with members"), at
    place, inside = edge
    return replace(call, place=place, inside=inside, written=NOTHING), at + 1


def _begin_value(call: CallObject, text: str, at: int) -> tuple[CallObject | Broken, int]:
    starts = _STARTS.get(call.role)
    if starts is None:
        return replace(call, inside=JsonValue()), at
    if call.has(call.role):
        return Broken(f"the call has more than one member for its {call.role}"), at
    if text[at] not in starts:
        return Broken(f"the call's {call.role} is of another type"), at
    return replace(call, inside=starts[text[at]], written=NOTHING + text[at]), at + 1


def _read_inside(
    call: CallObject, inside: JsonValue, text: str, at: int
) -> tuple[CallObject | Broken, int, tuple[Finding, ...]]:
    """Read on in a key or a value."""
    inside, end = inside.read(text, at)
    call = replace(call, inside=inside)
    if call.place == "key" or call.role in _STARTS:
        call = replace(call, written=call.written + text[at:end])
    found: tuple[Finding, ...] = ()
    if call.place == "value" and call.role == "arguments" and call.is_named:
        found = (Arguments(str(call.written)),)
        call = replace(call, written=NOTHING)
    if inside.is_broken:
        return Broken("the call is not JSON"), end, found
    if not inside.is_complete:
        return call, end, found
    call, more = _end_inside(call)
    return call, end, found + more


def _end_inside(call: CallObject) -> tuple[CallObject, tuple[Finding, ...]]:
    """Take what was read as a key, or as the value of one."""
    text = str(call.written)
    if call.place == "key":
        role = _ROLES.get(json.loads('"' + text), "")
        return replace(call, place="colon", inside=None, role=role), ()
    call = replace(call, place="comma", inside=None, written=NOTHING)
    if call.role not in _STARTS:
        return call, ()
    call = replace(call, known=(*call.known, (call.role, text)))
    return call, _named(dict(call.known)) if call.role == "name" else ()


def _named(known: dict[str, str]) -> tuple[Finding, ...]:
    """Tell the name, and the arguments that stood before it."""
    named = Named(json.loads(known["name"]), json.loads(known.get("id", '""')))
    return (named, Arguments(known["arguments"])) if "arguments" in known else (named,)
