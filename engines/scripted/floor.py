"""What tokens are worth that a law does not list, where a setting makes them count."""

from __future__ import annotations

from engines.scripted.distribution import Weights
from engines.scripted.law import Logits
from engines.scripted.vocabulary import VOCABULARY_SIZE, Special

FLOOR = -30.0
"""Their logit, far below whatever laws list."""

_STEP = 5.0
_CLOSING = {*b'"]}', Special.EOS}
_BLANK = {*b" \t\r\n"}


def _floor(token: int) -> float:
    """Return a token's logit: what closes something comes first, and blanks come last.

    So an output that has to match a grammar comes to an end, instead of trying its patience
    with blanks.
    """
    return FLOOR + _STEP * ((token in _CLOSING) - (token in _BLANK))


_FLOORS = tuple(map(_floor, range(VOCABULARY_SIZE)))


def with_floor(logits: Logits, vocabulary_size: int) -> Weights:
    """Return the logits of a whole vocabulary."""
    return dict(enumerate(_FLOORS[:vocabulary_size])) | without_padding(logits, vocabulary_size)


def without_padding(logits: Logits, vocabulary_size: int) -> Weights:
    """Return the logits of the tokens that a law lists and the vocabulary has."""
    return {token: logit for token, logit in logits if token < vocabulary_size}
