"""Bytes to characters, when a character may lie across tokens."""

from __future__ import annotations

import codecs


def decode_complete(data: bytes) -> tuple[str, bytes]:
    """Decode all that is certain, and return the unfinished character after it.

    The second value holds at most three bytes, to be put before the next ones.
    Sequences that no byte could complete become U+FFFD, one for each maximal
    part, as when all is decoded at once.
    """
    text, consumed = codecs.utf_8_decode(data, "replace", False)
    return text, data[consumed:]


def decode_end(unfinished: bytes) -> str:
    """Decode what is left when nothing follows: U+FFFD, or nothing."""
    return unfinished.decode("utf-8", "replace")
