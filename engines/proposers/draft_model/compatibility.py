"""Which drafts fit a target: those of the same tokenizer, whatever their names and padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from service.errors import IncompatibleDraft


@dataclass(frozen=True, slots=True)
class TokenizerIdentity:
    """A tokenizer by its fingerprint; `vocabulary`, in id order, only explains a mismatch."""

    fingerprint: bytes
    vocabulary: Sequence[str | bytes] = ()


def require_same_tokenizer(target: TokenizerIdentity, draft: TokenizerIdentity) -> None:
    """Refuse a draft whose token ids mean other text than the target's.

    Rows beyond the tokenizer's vocabulary are padding and do not count.

    Raises:
        IncompatibleDraft: naming the first token that differs, where vocabularies are given.
    """
    if target.fingerprint == draft.fingerprint:
        return
    pairs = zip(target.vocabulary, draft.vocabulary, strict=False)
    for token, (wanted, given) in enumerate(pairs):
        if wanted != given:
            raise IncompatibleDraft(f"token {token}", repr(wanted), repr(given))
    field = "tokenizer fingerprint"
    raise IncompatibleDraft(field, target.fingerprint.hex(), draft.fingerprint.hex())
