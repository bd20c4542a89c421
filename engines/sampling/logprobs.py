"""Log-probabilities of a token and of the likeliest beside it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engines.sampling.kept import Kept
from service.speculation.contract import TokenLogprob

Row = NDArray[np.float32]


def of_logits(row: Row, token: int, alternatives: int) -> TokenLogprob:
    """Return what a softmax at temperature one of logits `[vocabulary]` gives a token."""
    peak = float(row.max())
    total = float(np.exp(row.astype(np.float64) - peak).sum())
    shift = peak + float(np.log(total))
    logprob = float(row[token]) - shift
    if not alternatives:
        return TokenLogprob(logprob)
    possible = np.flatnonzero(np.isfinite(row))
    best = possible[np.lexsort((possible, -row[possible]))][:alternatives]
    pairs = [(int(each), float(row[each]) - shift) for each in best]
    return TokenLogprob(logprob, _with(pairs, token, logprob, alternatives))


def of_kept(kept: Kept, token: int, alternatives: int) -> TokenLogprob:
    """Return what a truncated distribution gives a token."""
    logprob = float(np.log(kept.probability(token)))
    if not alternatives:
        return TokenLogprob(logprob)
    order = np.lexsort((kept.ids, -kept.probabilities))[:alternatives]
    pairs = [(int(kept.ids[place]), float(np.log(kept.probabilities[place]))) for place in order]
    return TokenLogprob(logprob, _with(pairs, token, logprob, alternatives))


def _with(
    pairs: list[tuple[int, float]], token: int, logprob: float, count: int
) -> tuple[tuple[int, float], ...]:
    """Return the pairs, the token among them, in the place of the last where it was not."""
    if all(each != token for each, _ in pairs):
        pairs = [*pairs[: count - 1], (token, logprob)]
    return tuple(pairs)
