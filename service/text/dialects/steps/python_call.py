"""The arguments of a call that is written as in Python, made JSON."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace

from service.text.dialects.steps.progress import (
    NOTHING,
    Arguments,
    Broken,
    Complete,
    Next,
    Pieces,
    Progress,
)

_OUTSIDE = re.compile(r"""[^)"']*""")
_INSIDE = {quote: re.compile(rf"""(?:[^{quote}\\])*""") for quote in "\"'"}
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<number>-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)
      | (?P<word>[A-Za-z_]\w*)
      | (?P<mark>[\[\]{}:,=])
    )\s*""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_WORDS = {"True": "true", "False": "false", "None": "null"}
_WORDS |= {word: word for word in _WORDS.values()}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}
_DEEPER = {"[": 1, "{": 1, "]": -1, "}": -1}
_MAX_DEPTH = 64


@dataclass(frozen=True, slots=True)
class PythonArguments:
    """Reads `key=value, …)`: strings, numbers, truth values, None, lists and dictionaries.

    They are passed on as one JSON object once the bracket closes; `then` reads on behind it.
    `quote` is the one that the text stands in, `is_escaped` says that a backslash went before.
    """

    then: str
    written: Pieces = NOTHING
    quote: str = ""
    is_escaped: bool = False

    def read(self, text: str) -> Progress:
        quote, is_escaped, at = self.quote, self.is_escaped, 0
        while at < len(text):
            if is_escaped:
                is_escaped, at = False, at + 1
                continue
            run = (_INSIDE[quote] if quote else _OUTSIDE).match(text, at)
            at = run.end() if run else at
            if at == len(text):
                break
            if not quote and text[at] == ")":
                return self._end(str(self.written) + text[:at], text[at + 1 :])
            is_escaped = text[at] == "\\"
            if not is_escaped:
                quote = "" if quote else text[at]
            at += 1
        written = self.written + text
        return Progress(replace(self, written=written, quote=quote, is_escaped=is_escaped))

    def _end(self, written: str, rest: str) -> Progress:
        converted = json_object(written)
        if converted is None:
            return Progress(Broken("the arguments are not literals by keyword"))
        return Progress(Next(self.then, rest), (Arguments(converted), Complete()))


def json_object(keywords: str) -> str | None:
    """Return the JSON object of Python's `key=value, …`; None where it is something else."""
    written, at, depth = [], 0, 0
    keywords = keywords.rstrip()
    while at < len(keywords):
        token = _TOKEN.match(keywords, at)
        if token is None:
            return None
        at = token.end()
        depth += _DEEPER.get(token["mark"], 0)
        is_key = depth == 0 and token["word"] is not None and keywords[at : at + 1] == "="
        text = json.dumps(token["word"]) if is_key else _value(token, is_nested=depth > 0)
        if text is None or depth > _MAX_DEPTH:
            return None
        written.append(text)
    members = "{" + "".join(written) + "}"
    try:
        json.loads(members, object_pairs_hook=_distinct)
    except ValueError:
        return None
    return members


def _value(token: re.Match[str], *, is_nested: bool) -> str | None:
    """Return a token as JSON; what JSON cannot make of the whole shows when it is read."""
    if (string := token["string"]) is not None:
        return json.dumps(_ESCAPE.sub(_unescaped, string[1:-1]), ensure_ascii=False)
    if token["word"] is not None:
        return _WORDS.get(token["word"])
    if token["mark"] in ("=", ":"):
        return ":" if is_nested == (token["mark"] == ":") else None
    return token["number"] or token["mark"]


def _unescaped(escape: re.Match[str]) -> str:
    character: str = escape[1]
    if len(character) > 1:
        return chr(int(character[1:], 16))
    plain = character if character in "\\\"'" else escape[0]
    return _ESCAPED.get(character, plain)


def _distinct(members: list[tuple[str, object]]) -> dict[str, object]:
    distinct = dict(members)
    if len(distinct) < len(members):
        raise ValueError("a key stands twice")
    return distinct
