"""One name for a vocabulary: under equal fingerprints every token id spells the same text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence


def tokenizer_fingerprint(vocabulary: Sequence[str], merges: Iterable[tuple[str, str]]) -> bytes:
    """Digest a vocabulary, in id order, and its merges, in rank order, to 32 bytes.

    Every string is preceded by its length in bytes, so no two different
    vocabularies share an encoding.
    """
    digest = hashlib.sha256()
    _add_strings(digest, vocabulary)
    _add_strings(digest, [part for merge in merges for part in merge])
    return digest.digest()


def _add_strings(digest: hashlib._Hash, strings: Sequence[str]) -> None:
    digest.update(len(strings).to_bytes(8, "little"))
    for string in strings:
        data = string.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(4, "little"))
        digest.update(data)
