"""Where a text's tokens occurred before, and what followed them there.

Only single tokens and pairs are indexed; longer matches are found by comparing
backwards from the latest places of the last pair. So a token costs two list
appends, whatever the length of the text, and a guess is bounded.

A guess is a function of the text before it alone, however that text came
about: drafted in one block or in two, assumed or committed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

MAX_MATCH = 32
_MAX_PLACES = 16
_ESCAPE_WEIGHT = 3.5
_ESCAPE_POWER = 1.25
_ESCAPES = tuple(
    _ESCAPE_WEIGHT / math.pow(length, _ESCAPE_POWER) for length in range(1, MAX_MATCH + 1)
)


@dataclass(frozen=True, slots=True)
class Guess:
    """The likeliest next token.

    `probability` counts with an escape: `hits` of `total` places of a match of
    `length` tokens were followed by the token, and the text does something new
    with the weight of 3.5 / length ** 1.25 places. Fitted to what a model
    really wrote, and on the sparing side where costs were worse than measured.
    """

    token: int
    probability: float


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

    def truncate(self, length: int) -> None:
        """Take back every token from position `length` on, and the places that they made."""
        text = self._text
        while len(text) > length:
            text.pop()
            if text:
                self._tokens[text[-1]].pop()
                if len(text) > 1:
                    self._pairs[text[-2], text[-1]].pop()

    def guess(self) -> Guess | None:
        """Guess what follows the text: None where its end never occurred before.

        The longest match decides, and of its places the token that most of them
        are followed by, the latest among equals.
        """
        length, places = self._longest_match()
        if not places:
            return None
        followers = [self._text[place + 1] for place in places]
        token = max(reversed(followers), key=followers.count)
        hits = followers.count(token)
        return Guess(token, hits / (len(places) + _ESCAPES[length - 1]))

    def _longest_match(self) -> tuple[int, list[int]]:
        """Return the length of the longest match of the end, and its latest places, ascending."""
        text = self._text
        pairs = self._pairs.get((text[-2], text[-1])) if len(text) > 1 else None
        if not pairs:
            return 1, self._tokens.get(text[-1], [])[-_MAX_PLACES:] if text else []
        longest = 0
        places: list[int] = []
        for place in pairs[-_MAX_PLACES:]:
            length = self._match_length(place)
            if length > longest:
                longest, places = length, []
            if length == longest:
                places.append(place)
        return longest, places

    def _match_length(self, place: int) -> int:
        """Count the tokens up to `place`, a place of the last pair, that equal the last ones."""
        text, length = self._text, 2
        limit = min(place + 1, MAX_MATCH)
        while length < limit and text[place - length] == text[-1 - length]:
            length += 1
        return length
