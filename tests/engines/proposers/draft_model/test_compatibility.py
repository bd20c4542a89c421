"""Which drafts are refused, and what is said about them."""

import pytest

from engines.proposers.draft_model.compatibility import TokenizerIdentity, require_same_tokenizer
from service.errors import IncompatibleDraft

WORDS = tuple(f"word {token}" for token in range(200))
TARGET = TokenizerIdentity(b"t" * 32, WORDS)


def test_same_fingerprint_fits_whatever_else() -> None:
    """B10: a padded vocabulary is not part of the tokenizer."""
    require_same_tokenizer(TARGET, TokenizerIdentity(b"t" * 32, (*WORDS, "padding")))


def test_other_content_is_refused_by_the_first_token_that_differs() -> None:
    """B10: the same size, another token at id 100."""
    words = (*WORDS[:100], "other", *WORDS[101:])

    with pytest.raises(IncompatibleDraft, match="token 100 is 'other'") as refused:
        require_same_tokenizer(TARGET, TokenizerIdentity(b"d" * 32, words))

    assert "token 100" == refused.value.field


@pytest.mark.parametrize("vocabulary", [(), WORDS])
def test_other_fingerprint_is_refused_without_a_differing_token(vocabulary) -> None:
    """Merges may differ where the vocabulary does not."""
    with pytest.raises(IncompatibleDraft, match="tokenizer fingerprint"):
        require_same_tokenizer(TARGET, TokenizerIdentity(b"d" * 32, vocabulary))
