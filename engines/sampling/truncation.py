"""Truncation of one row: top-k, then top-p, min-p, top-a and typical-p, after the temperature.

All but the last keep the first ids by logit (ties by id), so a threshold cuts the row down
to few candidates and only those are sorted. The threshold never decides what is
kept: where the candidates do not suffice, the whole row takes their place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from engines.sampling.kept import Kept, Probabilities
from engines.sampling.logits import Ids, Row

CANDIDATE_NATS = 12.0
SLACK_NATS = 1e-3
"""Candidates are looked for this much deeper than is exact, as rounding may move either."""
_TYPICAL_PLACES = 1024
_HOTTEST = 1e30
"""Where single precision still tells a temperature from infinity, and any row is uniform."""


class Truncating(Protocol):
    """What cuts a row of logits down to the ids that may be drawn."""

    def keep(self, row: Row, peak: float, temperature: float) -> Kept:
        """Return what is kept of logits `[vocabulary]` whose maximum is the finite `peak`."""


@dataclass(frozen=True, slots=True)
class Truncation:
    """The truncations; the defaults keep everything.

    `top_k` zero, or at least the vocabulary, is off; ties with the last kept
    logit are kept. `top_p` keeps up to and including the id that reaches it, at
    least one. `min_p` is relative to the most likely id. `top_a` keeps what has at least that
    times the square of the highest probability, and the likeliest in any case. `typical_p`
    keeps the ids whose surprise is nearest to the entropy, up to and including the one with
    which they reach it.

    Sources: `top_p` Holtzman et al. 2020, arXiv:1904.09751; `typical_p` Meister et al. 2023,
    arXiv:2202.00666.
    """

    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    top_a: float = 0.0
    typical_p: float = 1.0

    def keep(self, row: Row, peak: float, temperature: float) -> Kept:
        """Return what is kept of logits `[vocabulary]` whose maximum is the finite `peak`.

        Cost: a comparison of the row, and its exponential where top-p stands
        without top-k; a sort of the row only where its mass is spread so thinly
        that the candidates hold less than `top_p` of it.
        """
        if 0 < self.top_k < row.size:
            ids = highest_ids(row, ids_within(row, peak, CANDIDATE_NATS * temperature), self.top_k)
            weights = weights_of(row[ids], peak, temperature)
            total = weights.sum()
        else:
            ids = ids_within(row, peak, self._depth() * temperature)
            weights = weights_of(row[ids], peak, temperature)
            total = total_of(row, peak, temperature) if self.top_p < 1.0 else 0.0
            if weights.sum() < self.top_p * total:
                ids, weights = np.arange(row.size), weights_of(row, peak, temperature)
        if self.top_p < 1.0:
            ids, weights = _nucleus(ids, weights, self.top_p * total)
        if self.min_p > 0.0:
            likely = weights >= self.min_p * weights.max()
            ids, weights = ids[likely], weights[likely]
        kept = Kept.of_weights(ids, weights)
        if self.top_a > 0.0:
            kept = _above_square(kept, self.top_a)
        return _typical(kept, self.typical_p) if self.typical_p < 1.0 else kept

    def _depth(self) -> float:
        """Return how many nats below the peak anything can be kept, or is worth a look."""
        if self.top_p < 1.0:
            return CANDIDATE_NATS
        if self.min_p > 0.0:
            return SLACK_NATS - math.log(self.min_p)
        return math.inf


NO_TRUNCATION = Truncation()


def ids_within(row: Row, peak: float, depth: float) -> Ids:
    """Return the ids `[n]`, ascending, of the logits at most `depth` below the peak."""
    if depth == math.inf:
        return np.arange(row.size)
    return np.flatnonzero(row >= peak - depth)


def highest_ids(row: Row, candidates: Ids, count: int) -> Ids:
    """Return those of the candidates, or of all ids if they are too few, with the highest logits.

    They are the `count` highest and all that equal the last of them, ascending.
    """
    if candidates.size < count:
        candidates = np.arange(row.size)
    logits = row[candidates]
    last = np.partition(logits, logits.size - count)[logits.size - count]
    highest: Ids = candidates[logits >= last]
    return highest


def weights_of(logits: Row, peak: float, temperature: float) -> Probabilities:
    """Return probabilities up to their common factor; the peak weighs one."""
    return np.exp((logits.astype(np.float64) - peak) / temperature)


def total_of(row: Row, peak: float, temperature: float) -> float:
    """Return the weight of a whole row, its exponentials in single precision."""
    scaled = (row - np.float32(peak)) * np.float32(1.0 / min(temperature, _HOTTEST))
    return float(np.exp(scaled, out=scaled).sum(dtype=np.float64))


def _nucleus(ids: Ids, weights: Probabilities, mass: float) -> tuple[Ids, Probabilities]:
    """Return the fewest ids, ascending, and their weights, that together reach `mass`."""
    descending = np.sort(weights)[::-1]
    count = min(int(descending.cumsum().searchsorted(mass)) + 1, weights.size)
    last = descending[count - 1]
    kept = weights > last
    kept[np.flatnonzero(weights == last)[: count - np.count_nonzero(kept)]] = True
    return ids[kept], weights[kept]


def _above_square(kept: Kept, top_a: float) -> Kept:
    highest = kept.probabilities.max()
    return kept.where(kept.probabilities >= min(highest, top_a * highest * highest))


def _typical(kept: Kept, mass: float) -> Kept:
    """Keep the ids whose surprise is nearest to the mean, as few as together reach `mass`."""
    probabilities = kept.probabilities
    surprise = -np.log(probabilities)
    distance = np.abs(surprise - (probabilities * surprise).sum())
    near = np.arange(distance.size)
    if distance.size > _TYPICAL_PLACES:
        # Nearly always some hundreds hold the mass, and a sort of the vocabulary is slow.
        furthest = np.partition(distance, _TYPICAL_PLACES)[_TYPICAL_PLACES]
        fewer = np.flatnonzero(distance <= furthest)
        near = fewer if probabilities[fewer].sum() >= mass else near
    order = near[np.argsort(distance[near], kind="stable")]
    count = int(probabilities[order].cumsum().searchsorted(mass)) + 1
    return kept.where(np.sort(order[:count]))
