"""Log-probabilities of a token and of the likeliest beside it."""

from __future__ import annotations

import math

import numpy as np

from engines.sampling.kept import Kept, likeliest
from engines.sampling.logits import Row
from service.errors import InvalidLogits
from service.speculation.contract import Alternative, TokenLogprob

_LEAST = math.log(math.ulp(0.0))
"""The logarithm of the smallest probability there is."""


def of_logits(row: Row, token: int, alternatives: int) -> TokenLogprob:
    """Return what a softmax at temperature one of logits `[vocabulary]` gives a token.

    The exponentials are in single precision, which moves the result by less than 1e-6.

    Raises:
        InvalidLogits: the row holds a NaN or an infinity, or nothing else.
    """
    peak = float(row.max())
    if not math.isfinite(peak):
        raise InvalidLogits(peak)
    with np.errstate(over="ignore"):
        weights = np.exp(row - np.float32(peak))
    shift = peak + math.log(float(weights.sum(dtype=np.float64)))
    logprob = float(row[token]) - shift
    ids = likeliest(row, alternatives) if alternatives else ()
    pairs = [(int(each), float(row[each]) - shift) for each in ids]
    return TokenLogprob(logprob, _with(pairs, (token, logprob)))


def of_kept(kept: Kept, token: int, alternatives: int) -> TokenLogprob:
    """Return what a truncated distribution gives a token."""
    probability = kept.probability(token)
    logprob = math.log(probability) if probability else -math.inf
    places = likeliest(kept.probabilities, alternatives) if alternatives else ()
    pairs = [(int(kept.ids[place]), math.log(kept.probabilities[place])) for place in places]
    return TokenLogprob(logprob, _with(pairs, (token, logprob)))


def _with(pairs: list[Alternative], own: Alternative) -> tuple[Alternative, ...]:
    """Return the pairs that have mass, and the token behind them if it is not among them."""
    listed = [pair for pair in pairs if pair[1] >= _LEAST]
    if pairs and own[1] > -math.inf and own[0] not in {token for token, _ in listed}:
        listed = [*listed, own]
    return tuple(listed)
