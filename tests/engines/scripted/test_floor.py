"""Unlisted tokens: below all that laws list, in an order that brings outputs to an end."""

import pytest

from engines.scripted.floor import with_floor
from engines.scripted.law import EchoLaw, HashLaw
from engines.scripted.vocabulary import VOCABULARY_SIZE, Special
from tests.engines.scripted.rows import kept
from tests.neutral import GREEDY


@pytest.mark.parametrize(
    ("allowed", "chosen"),
    [
        (b"az", b"a"),
        (b" \n!", b"!"),
        (b'!a"', b'"'),
        (b"0, }", b"}"),
        (b"\t \n", b"\t"),
    ],
)
def test_among_unlisted_tokens_what_closes_comes_first_and_blanks_last(allowed, chosen) -> None:
    """Otherwise the lowest id: a grammar is left by the shortest way that is known."""
    assert {*chosen} == kept(config=GREEDY, allowed_token_ids=frozenset(allowed))


def test_end_of_the_output_closes_it() -> None:
    allowed = frozenset({*b"a!", Special.EOS})

    assert {Special.EOS} == kept(config=GREEDY, allowed_token_ids=allowed)


@pytest.mark.parametrize("law", [HashLaw(), EchoLaw()], ids=["hash", "echo"])
def test_listed_token_is_likelier_than_any_other(law) -> None:
    logits = law.logits(tuple(b"once"))

    row = with_floor(logits, VOCABULARY_SIZE)

    assert VOCABULARY_SIZE == len(row)
    assert dict(logits).items() <= row.items()
    others = [logit for token, logit in row.items() if token not in dict(logits)]
    assert max(others) < min(dict(logits).values()) - 20.0
