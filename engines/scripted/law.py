"""Laws: what token follows a history, as a pure function of that history."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Protocol

from engines.scripted.vocabulary import VOCABULARY_SIZE, Special
from service.speculation.contract import Tokens

Logits = tuple[tuple[int, float], ...]
"""Logits of the possible tokens, ids ascending; every other token is impossible."""

_CERTAIN = 0.0
_DIGEST_BYTES = 64
_CANDIDATE_BYTES = 4


class Law(Protocol):
    """The distribution of the next token, given everything before it."""

    def logits(self, history: Sequence[int]) -> Logits:
        """Return the logits after a history, at least one."""


def most_likely(logits: Logits) -> int:
    """Return the token with the largest logit, the lowest id on ties."""
    return max(logits, key=lambda pair: (pair[1], -pair[0]))[0]


def _highest(logits: Logits) -> Logits:
    """Merge what names a token twice, and put the tokens in order."""
    highest: dict[int, float] = {}
    for token, logit in logits:
        highest[token] = max(logit, highest.get(token, logit))
    return tuple(sorted(highest.items()))


def continuation(law: Law, prompt: Tokens, length: int, end: frozenset[int]) -> Tokens:
    """Return what greedy decoding without speculation yields: the oracle of tests."""
    tokens: list[int] = []
    while len(tokens) < length and not (tokens and tokens[-1] in end):
        tokens.append(most_likely(law.logits((*prompt, *tokens))))
    return tuple(tokens)


@dataclass(frozen=True, slots=True)
class HashLaw:
    """Few candidates with logits in [0, 4), all drawn from a hash of the whole history.

    One wrong, missing or additional token anywhere before a row changes the
    row, so a cache that is off by one cannot go unnoticed. `end_one_in` makes
    the end token certain after one history in so many; zero never does.
    """

    alphabet: Tokens = tuple(range(ord("a"), ord("z") + 1))
    candidates: int = 3
    end_one_in: int = 0
    key: bytes = b""

    def __post_init__(self) -> None:
        """Refuse settings that leave no candidate, or more than a digest has room for."""
        room = _DIGEST_BYTES // _CANDIDATE_BYTES - 1
        if not self.alphabet or not 0 < self.candidates <= room:
            raise ValueError(f"a hash law needs an alphabet and 1 to {room} candidates")

    def logits(self, history: Sequence[int]) -> Logits:
        """Return the candidates of a history."""
        packed = struct.pack(f"<{len(history)}I", *history)
        digest = blake2b(packed, digest_size=_DIGEST_BYTES, key=self.key).digest()
        words = struct.unpack(f"<{_DIGEST_BYTES // _CANDIDATE_BYTES}I", digest)
        if self.end_one_in and words[-1] % self.end_one_in == 0:
            return ((Special.EOS, _CERTAIN),)
        return _highest(tuple(map(self._candidate, words[: self.candidates])))

    def _candidate(self, word: int) -> tuple[int, float]:
        return self.alphabet[word % len(self.alphabet)], (word >> 16) / 2.0**14


@dataclass(frozen=True, slots=True)
class MixedLaw:
    """The candidates of two laws together, each with its larger logit: a draft that errs."""

    first: Law
    second: Law

    def logits(self, history: Sequence[int]) -> Logits:
        """Return the candidates of both laws."""
        return _highest(self.first.logits(history) + self.second.logits(history))


@dataclass(frozen=True, slots=True)
class ScriptLaw:
    """Exact outputs for given prompts, each ended by the end token; `otherwise` rules the rest.

    A history that leaves its script, as behind a wrong proposal, is ruled by
    `otherwise` too. Where several scripts fit, the first one counts.
    """

    scripts: tuple[tuple[Tokens, Tokens], ...]
    otherwise: Law = field(default_factory=HashLaw)

    def logits(self, history: Sequence[int]) -> Logits:
        """Return the scripted token alone, or what the other law says."""
        tokens = tuple(history)
        for prompt, output in self.scripts:
            script = (*prompt, *output, Special.EOS)
            follows = len(prompt) <= len(tokens) < len(script)
            if follows and script[: len(tokens)] == tokens:
                return ((script[len(tokens)], _CERTAIN),)
        return self.otherwise.logits(history)


VERSE = (
    "One small bird sat on the old stone wall, and the wind went over the hill. "
    "Two small birds sat on the old stone wall, and the wind went over the hill. "
    "Three small birds sat on the old stone wall, and the wind went over the hill. "
    "Then the wind grew still, and the birds sang on, and that is the end of it all."
)
_RIVAL = -3.0


@dataclass(frozen=True, slots=True)
class EchoLaw:
    """Repeat what the user wrote, then recite a verse, then end: readable and full of copies.

    Behind a prompt without turns the verse alone follows. Each token has two
    rivals with little probability, so that sampling strays; the text then goes
    on from where its last characters are found.
    """

    verse: str = VERSE

    def logits(self, history: Sequence[int]) -> Logits:
        """Return the next token of the plan that fits the history, and its rivals."""
        expected = _resume(*self._plan(tuple(history)))
        if expected == Special.EOS:
            return ((expected, _CERTAIN),)
        rivals = {(expected + step) % VOCABULARY_SIZE: _RIVAL for step in (1, 2)}
        return tuple(sorted({**rivals, expected: _CERTAIN}.items()))

    def _plan(self, tokens: Tokens) -> tuple[Tokens, Tokens]:
        """Return the whole planned reply, and the reply so far."""
        verse = (*self.verse.encode(), Special.EOS)
        if Special.REPLY not in tokens:
            return verse, tokens
        start = len(tokens) - tokens[::-1].index(Special.REPLY)
        asked = tokens[: start - 1]
        if Special.USER in asked:
            asked = asked[len(asked) - asked[::-1].index(Special.USER) :]
        return (*b"You wrote: ", *asked, *b"\n", *verse), tokens[start:]


def _resume(plan: Tokens, spoken: Tokens) -> int:
    """Return what the plan says after the longest ending of the reply that it contains."""
    if plan[: len(spoken)] == spoken and len(spoken) < len(plan):
        return plan[len(spoken)]
    return plan[_place_after(_as_characters(plan[:-1]), _as_characters(spoken))]


def _as_characters(tokens: Tokens) -> str:
    return "".join(map(chr, tokens))


def _place_after(text: str, tail: str) -> int:
    """Return the place behind the longest ending of `tail` in `text`, by bisection; 0 if none."""
    found, bound = 0, min(len(text), len(tail)) + 1
    while bound - found > 1:
        length = (found + bound) // 2
        if tail[-length:] in text:
            found = length
        else:
            bound = length
    return text.index(tail[-found:]) + found if found else 0
