"""Where a text's tokens occurred before, and what followed them there.

Only single tokens and pairs are indexed; longer matches are found by comparing
backwards from the latest places of the last pair. So a token costs two list
appends, whatever the length of the text, and a look-up is bounded.

The probability of a guess is that of counts with an escape: `hits` of `total`
places were followed by the token, and the text may always do something new,
with the weight of `2.5 / length ** 1.25` places for a match of `length` tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from service.speculation.contract import Tokens
from service.speculation.width import Outlook

MAX_MATCH = 16
_MAX_PLACES = 16
_ESCAPE_WEIGHT = 2.5
_ESCAPE_POWER = 1.25


@dataclass(frozen=True, slots=True)
class Path:
    """What most likely follows, and by position how likely all of it up to there is right."""

    tokens: Tokens
    outlook: Outlook


class TextIndex:
    """The places of one growing text; a place is the position of a match's last token."""

    def __init__(self) -> None:
        self._text: list[int] = []
        self._tokens: dict[int, list[int]] = {}
        self._pairs: dict[tuple[int, int], list[int]] = {}

    def __len__(self) -> int:
        return len(self._text)

    def extend(self, tokens: Sequence[int]) -> None:
        """Append tokens; each makes the place before it one that is followed by something."""
        text = self._text
        for token in tokens:
            if text:
                place = len(text) - 1
                self._tokens.setdefault(text[-1], []).append(place)
                if place:
                    self._pairs.setdefault((text[-2], text[-1]), []).append(place)
            text.append(token)

    def follow(self, assumed: Tokens, width: int, floor: float) -> Path:
        """Guess up to `width` tokens after the text and the `assumed` tokens behind it.

        The longest match decides, at each step the token that most of its
        places are followed by, the latest among equals. A path ends where it
        is less likely than `floor`.
        """
        length, places = self._longest_match(assumed)
        known, ahead = len(self._text), list(assumed)
        outlook: list[float] = []
        likely = 1.0
        while places and len(outlook) < width:
            step = len(outlook) + 1
            followers = [
                self._text[place + step] if place + step < known else ahead[place + step - known]
                for place in places
            ]
            token = max(reversed(followers), key=followers.count)
            hits = followers.count(token)
            likely *= hits / (len(places) + _escape(length + step - 1))
            if likely < floor:
                break
            outlook.append(likely)
            ahead.append(token)
            places = [
                place
                for place, follower in zip(places, followers, strict=True)
                if follower == token
            ]
        return Path(tuple(ahead[len(assumed) :]), tuple(outlook))

    def _longest_match(self, assumed: Tokens) -> tuple[int, list[int]]:
        """Return the length of the longest match of the end, and its latest places, ascending."""
        recent = (*self._text[-MAX_MATCH:], *assumed)[-MAX_MATCH:]
        pairs = self._pairs.get((recent[-2], recent[-1])) if len(recent) > 1 else None
        if not pairs:
            singles = self._tokens.get(recent[-1], []) if recent else []
            return 1, singles[-_MAX_PLACES:]
        longest = 0
        places: list[int] = []
        for place in pairs[-_MAX_PLACES:]:
            length = self._match_length(place, recent)
            if length > longest:
                longest, places = length, []
            if length == longest:
                places.append(place)
        return longest, places

    def _match_length(self, place: int, recent: Tokens) -> int:
        """Count the tokens up to `place`, a place of the last pair, that equal the recent ones."""
        length = 2
        limit = min(len(recent), place + 1)
        while length < limit and self._text[place - length] == recent[-1 - length]:
            length += 1
        return length


def _escape(length: int) -> float:
    return _ESCAPE_WEIGHT / math.pow(length, _ESCAPE_POWER)
