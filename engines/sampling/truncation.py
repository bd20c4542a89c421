"""Truncation of one row: top-k, then top-p, then min-p, after the temperature.

Each keeps the first ids by logit (ties by id), so a threshold cuts the row down
to few candidates and only those are sorted. The threshold never decides what is
kept: where the candidates do not suffice, the whole row takes their place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.sampling.kept import Ids, Kept, Probabilities

Row = NDArray[np.float32]

_CANDIDATE_NATS = 12.0
_MIN_P_SLACK_NATS = 1e-3


@dataclass(frozen=True, slots=True)
class Truncation:
    """The truncations; the defaults keep everything.

    `top_k` zero, or at least the vocabulary, is off; ties with the last kept
    logit are kept. `top_p` keeps up to and including the id that reaches it, at
    least one. `min_p` is relative to the most likely id.
    """

    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0

    def keep(self, row: Row, peak: float, temperature: float) -> Kept:
        """Return what is kept of logits `[vocabulary]` whose maximum is the finite `peak`.

        Cost: a comparison of the row, and its exponential where top-p stands
        without top-k; a sort of the row only where its mass is spread so thinly
        that the candidates hold less than `top_p` of it.
        """
        if 0 < self.top_k < row.size:
            ids = _highest(row, _candidates(row, peak, _CANDIDATE_NATS * temperature), self.top_k)
            weights = _weights(row[ids], peak, temperature)
            total = weights.sum()
        else:
            ids = _candidates(row, peak, self._depth() * temperature)
            weights = _weights(row[ids], peak, temperature)
            total = _total(row, peak, temperature) if self.top_p < 1.0 else 0.0
            if weights.sum() < self.top_p * total:
                ids, weights = np.arange(row.size), _weights(row, peak, temperature)
        if self.top_p < 1.0:
            ids, weights = _nucleus(ids, weights, self.top_p * total)
        if self.min_p > 0.0:
            likely = weights >= self.min_p * weights.max()
            ids, weights = ids[likely], weights[likely]
        return Kept.of_weights(ids, weights)

    def _depth(self) -> float:
        """Return how many nats below the peak anything can be kept, or is worth a look."""
        if self.top_p < 1.0:
            return _CANDIDATE_NATS
        if self.min_p > 0.0:
            return _MIN_P_SLACK_NATS - math.log(self.min_p)
        return math.inf


NO_TRUNCATION = Truncation()


def _candidates(row: Row, peak: float, depth: float) -> Ids:
    """Return the ids, ascending, of the logits at most `depth` below the peak."""
    if depth == math.inf:
        return np.arange(row.size)
    return np.flatnonzero(row >= peak - depth)


def _highest(row: Row, candidates: Ids, count: int) -> Ids:
    """Return the ids, ascending, of the `count` highest logits and of all equal to the last."""
    if candidates.size < count:
        candidates = np.arange(row.size)
    logits = row[candidates]
    last = np.partition(logits, logits.size - count)[logits.size - count]
    highest: Ids = candidates[logits >= last]
    return highest


def _weights(logits: Row, peak: float, temperature: float) -> Probabilities:
    """Return probabilities up to their common factor; the peak weighs one."""
    return np.exp((logits.astype(np.float64) - peak) / temperature)


def _total(row: Row, peak: float, temperature: float) -> float:
    """Return the weight of a whole row, its exponentials in single precision."""
    scaled = (row - np.float32(peak)) * np.float32(1.0 / temperature)
    return float(np.exp(scaled, out=scaled).sum(dtype=np.float64))


def _nucleus(ids: Ids, weights: Probabilities, mass: float) -> tuple[Ids, Probabilities]:
    """Return the fewest ids, ascending, and their weights, that together reach `mass`."""
    descending = np.sort(weights)[::-1]
    count = min(int(descending.cumsum().searchsorted(mass)) + 1, weights.size)
    last = descending[count - 1]
    kept = weights > last
    kept[np.flatnonzero(weights == last)[: count - np.count_nonzero(kept)]] = True
    return ids[kept], weights[kept]
