"""The bytes behind token ids: what each token adds to a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice

from service.errors import FieldViolation

_MAX_REPORTED = 16


@cache
def byte_symbols() -> dict[str, int]:
    """Return the byte of each printable character that spells it in a byte-level vocabulary.

    Printable Latin-1 bytes stand for themselves; the others take the characters
    from U+0100 on, in the order of their values.

    Source: Radford et al. 2019 (GPT-2), section 2.2.
    """
    printable = [*chain(range(0x21, 0x7F), range(0xA1, 0xAD), range(0xAE, 0x100))]
    others = [byte for byte in range(0x100) if byte not in set(printable)]
    spelled = {chr(byte): byte for byte in printable}
    return spelled | {chr(0x100 + place): byte for place, byte in enumerate(others)}


def spelled_bytes(token: str) -> bytes:
    """Return the bytes that a vocabulary entry spells.

    An entry that uses other characters stands for its own text, as in the
    `tokenizers` library.
    """
    symbols = byte_symbols()
    if all(character in symbols for character in token):
        return bytes(symbols[character] for character in token)
    return token.encode()


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The bytes of every token, by id; ids that no token has are empty.

    Tokens in `special` steer the model and are no part of a text, although they
    have bytes of their own.
    """

    tokens: tuple[bytes, ...]
    special: frozenset[int] = frozenset()

    @property
    def size(self) -> int:
        """Return the number of token ids."""
        return len(self.tokens)

    def text_bytes(self, token: int) -> bytes:
        """Return what a token adds to a text: nothing, if it is special."""
        return b"" if token in self.special else self.tokens[token]

    def special_id(self, text: str) -> int | None:
        """Return the special token that is written as `text`."""
        written = text.encode()
        return next((token for token in self.special if self.tokens[token] == written), None)

    def violations(self, ids: Sequence[int], field: str) -> tuple[FieldViolation, ...]:
        """Name the first ids that are no tokens, each by its position in `field`."""
        wrong = ((place, token) for place, token in enumerate(ids) if not 0 <= token < self.size)
        return tuple(
            FieldViolation(f"{field}[{place}]", self.refusal(token))
            for place, token in islice(wrong, _MAX_REPORTED)
        )

    def refusal(self, token: int) -> str:
        """Say why an id is no token."""
        return f"{token} is not a token id: ids go from 0 to {self.size - 1}"
