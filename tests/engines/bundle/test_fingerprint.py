"""Tokenizer fingerprints: equal for equal tokenizers only."""

import pytest

from engines.bundle.fingerprint import tokenizer_fingerprint

VOCABULARY = ["a", "b", "ab"]
MERGES = [("a", "b")]


def test_fingerprint_of_equal_tokenizers_is_equal() -> None:
    first = tokenizer_fingerprint(VOCABULARY, MERGES)

    assert 32 == len(first)
    assert first == tokenizer_fingerprint(list(VOCABULARY), list(MERGES))


@pytest.mark.parametrize(
    ("vocabulary", "merges"),
    [
        (["b", "a", "ab"], MERGES),
        (["ab", "", "ab"], MERGES),
        ([*VOCABULARY, "c"], MERGES),
        (VOCABULARY, []),
        (VOCABULARY, [("b", "a")]),
        (VOCABULARY, [("ab", "")]),
        ([*VOCABULARY, "a", "b"], []),
    ],
)
def test_fingerprint_of_another_tokenizer_differs(vocabulary, merges) -> None:
    """Order, boundaries between strings and the list a string is in all count."""
    other = tokenizer_fingerprint(vocabulary, merges)

    assert tokenizer_fingerprint(VOCABULARY, MERGES) != other
