"""Mirostat: the truncation that keeps the surprise of the output near a target.

Source: Basu et al. 2021, arXiv:2007.14966; version 2 is llama.cpp's simplification. Surprise is
measured in the distribution that was sampled from, after truncation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from engines.sampling.kept import Kept, likeliest
from engines.sampling.logits import Ids, Row
from engines.sampling.truncation import (
    CANDIDATE_NATS,
    SLACK_NATS,
    highest_ids,
    ids_within,
    total_of,
    weights_of,
)
from service.generation.sampling import MirostatSettings

_ZIPF_TOKENS = 100
_FURTHEST = 1e9
"""Where `mu` ends under absurd settings: all is kept, or one token, long before."""


@dataclass(frozen=True, slots=True)
class Mirostat:
    """The largest surprise `mu` to keep, in bits, moving at the rate `eta` towards `tau`."""

    version: int
    tau: float
    eta: float
    mu: float

    @classmethod
    def of(cls, settings: MirostatSettings) -> Mirostat:
        """Start at twice the target surprise."""
        mu = min(_FURTHEST, 2.0 * settings.tau)
        return cls(settings.version, settings.tau, settings.eta, mu)

    def keep(self, row: Row, peak: float, temperature: float) -> Kept:
        """Return what is kept of logits `[vocabulary]` whose maximum is the finite `peak`."""
        find = self._first if self.version == 1 else self._second
        ids = find(row, peak, temperature)
        return Kept.of_weights(ids, weights_of(row[ids], peak, temperature))

    def after(self, probability: float) -> Mirostat:
        """Return the state after a token of this probability was committed."""
        surprise = -math.log2(probability)
        mu = self.mu - self.eta * (surprise - self.tau)
        return replace(self, mu=max(-_FURTHEST, min(_FURTHEST, mu)))

    def _first(self, row: Row, peak: float, temperature: float) -> Ids:
        """Return so many of the likeliest ids that a Zipf law would hold the surprise at `mu`.

        With ε = s - 1 that is the nearest number to (ε · 2^mu / (1 - V^-ε))^(1/s), computed as
        its logarithm to the base of 2. Ties with the last are kept.
        """
        exponent = _zipf_exponent(row, temperature)
        if exponent <= 0.0:
            return np.arange(row.size)
        excess, nats = exponent - 1.0, math.log(row.size)
        lost = -math.expm1(-excess * nats)
        bits = (self.mu + math.log2(excess / lost if lost else 1.0 / nats)) / exponent
        if bits >= math.log2(row.size):
            return np.arange(row.size)
        count = max(1, round(math.pow(2.0, bits)))
        return highest_ids(row, ids_within(row, peak, CANDIDATE_NATS * temperature), count)

    def _second(self, row: Row, peak: float, temperature: float) -> Ids:
        """Return the ids of a surprise of at most `mu`, and the likeliest in any case."""
        total = total_of(row, peak, temperature)
        most = max(0.0, self.mu * math.log(2.0) - math.log(total))
        ids = ids_within(row, peak, (most + SLACK_NATS) * temperature)
        kept = weights_of(row[ids], peak, temperature) >= 2.0 ** min(-self.mu, 1.0) * total
        return ids[kept] if kept.any() else np.array([row.argmax()])


def _zipf_exponent(row: Row, temperature: float) -> float:
    """Estimate s of a law p(i) ~ i^-s from the likeliest ids; zero where no two are possible."""
    logits = row[likeliest(row, _ZIPF_TOKENS)].astype(np.float64)
    falls = -np.diff(logits[np.isfinite(logits)]) / temperature
    steps = np.diff(np.log(np.arange(1, falls.size + 2)))
    return float((steps * falls).sum() / (steps * steps).sum()) if falls.size else 0.0
