"""XTC: now and then, drop the likeliest tokens.

Source: "Exclude Top Choices" sampling, text-generation-webui, pull request 6335.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engines.sampling.kept import Kept
from service.generation.randomness import AddressedRandomness


@dataclass(frozen=True, slots=True)
class Xtc:
    """At a position whose coin is below `probability`, tokens above `threshold` are dropped.

    The coins are the request's, addressed by output position, so that a draft's distribution
    has the shape of the target's.
    """

    probability: float
    threshold: float
    coins: AddressedRandomness

    def thin(self, kept: Kept, position: int) -> Kept:
        """Drop all tokens at or above the threshold but the least likely, where there are two.

        Of equally likely ones the highest id stays: it ranks last.
        """
        if self.coins.at(position) >= self.probability:
            return kept
        top = np.flatnonzero(kept.probabilities >= self.threshold)[::-1]
        if top.size <= 1:
            return kept
        stays = kept.probabilities < self.threshold
        stays[top[kept.probabilities[top].argmin()]] = True
        return kept.where(stays)
