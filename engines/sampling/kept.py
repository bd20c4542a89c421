"""A distribution over the ids that truncation kept, all others having no mass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.sampling.one_hot import OneHot
from service.speculation.contract import Distribution

Ids = NDArray[np.intp]
Probabilities = NDArray[np.float64]

USABLE_MASS = 1e-12
"""Below this a residual is rounding, not probability."""


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """Ids `[n]`, ascending, and their probabilities `[n]`, each above zero, of sum one.

    Inverse CDF runs in the order of ids, so a draw means the same token
    whatever the probabilities were sorted by before.
    """

    ids: Ids
    probabilities: Probabilities

    @classmethod
    def of_weights(cls, ids: Ids, weights: Probabilities) -> Kept:
        """Normalise weights, which need not sum to one; ids without weight are dropped."""
        positive = weights > 0.0
        if not positive.all():
            ids, weights = ids[positive], weights[positive]
        return cls(ids, weights / weights.sum())

    def where(self, stays: NDArray[np.bool_] | Ids) -> Kept:
        """Return the ids that stay, by a mask or their places, ascending, at their new share."""
        return Kept.of_weights(self.ids[stays], self.probabilities[stays])

    def probability(self, token: int) -> float:
        place = int(self.ids.searchsorted(token))
        if place < self.ids.size and self.ids[place] == token:
            return float(self.probabilities[place])
        return 0.0

    def sample(self, draw: float | None) -> int:
        if draw is None:
            return int(self.ids[self.probabilities.argmax()])
        cumulative = self.probabilities.cumsum()
        # For draw < 1 the product rounds below the last sum, so the place always exists.
        place = cumulative.searchsorted(draw * cumulative[-1], side="right")
        return int(self.ids[place])

    def excess_over(self, draft: Distribution) -> Kept | None:
        excess = np.maximum(self.probabilities - _probabilities_at(draft, self.ids), 0.0)
        return Kept.of_weights(self.ids, excess) if excess.sum() > USABLE_MASS else None


def likeliest(values: NDArray[np.floating], count: int) -> Ids:
    """Return the places of the `count` highest values, highest first, the first among equals.

    Cost: a partition; only what is returned is sorted.
    """
    if count >= values.size:
        places = np.arange(values.size)
    else:
        last = np.partition(values, values.size - count)[values.size - count]
        above = np.flatnonzero(values > last)
        equal = np.flatnonzero(values == last)[: count - above.size]
        places = np.concatenate((above, equal))
    order: Ids = places[np.lexsort((places, -values[places]))]
    return order


def _probabilities_at(distribution: Distribution, ids: Ids) -> Probabilities:
    """Return the probabilities `[n]` that any distribution gives to `ids`, ascending."""
    match distribution:
        case OneHot(token):
            return np.equal(ids, token).astype(np.float64)
        case Kept():
            everything = np.zeros(max(ids[-1], distribution.ids[-1]) + 1)
            everything[distribution.ids] = distribution.probabilities
            return everything[ids]
        case _:
            return np.array([distribution.probability(int(token)) for token in ids], np.float64)
