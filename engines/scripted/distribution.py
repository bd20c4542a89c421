"""Distributions in pure Python: few tokens with probability, all others with none."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass

from engines.scripted.law import most_likely
from service.speculation.contract import Distribution, TokenLogprob, Tokens

LARGEST = 3.4028235e38
"""The largest number of a request's state: float32's, so that no difference is infinite."""

Weights = dict[int, float]
"""A number for each possible token: its logit, or its share of the probability."""


@dataclass(frozen=True, slots=True)
class SparseDistribution:
    """Tokens in ascending order and their probabilities, which sum to one."""

    tokens: Tokens
    probabilities: tuple[float, ...]

    def probability(self, token: int) -> float:
        """Return the probability of a token, zero where it is not listed."""
        place = bisect_left(self.tokens, token)
        listed = place < len(self.tokens) and self.tokens[place] == token
        return self.probabilities[place] if listed else 0.0

    def sample(self, draw: float | None) -> int:
        """Return the first token whose cumulative probability exceeds the draw."""
        if draw is None:
            return most_likely(tuple(zip(self.tokens, self.probabilities, strict=True)))
        cumulative = 0.0
        for token, probability in zip(self.tokens, self.probabilities, strict=True):
            cumulative += probability
            if draw < cumulative:
                return token
        return self.tokens[-1]

    def excess_over(self, draft: Distribution) -> SparseDistribution | None:
        """Return the normalised part of the probabilities that the draft's do not cover."""
        excess = {
            token: probability - draft.probability(token)
            for token, probability in zip(self.tokens, self.probabilities, strict=True)
        }
        usable = {token: mass for token, mass in excess.items() if mass > 0.0}
        return distribution_of(usable) if usable else None

    def logprob(self, token: int, alternatives: int) -> TokenLogprob:
        """Return a token's log-probability, and those of the likeliest tokens, itself among them.

        A token without probability is listed nowhere, not even where it is asked for.
        """
        probability = self.probability(token)
        if not probability:
            return TokenLogprob(-math.inf, self._likeliest(alternatives))
        logprob = math.log(probability)
        likeliest = self._likeliest(alternatives)
        if alternatives and all(each != token for each, _ in likeliest):
            likeliest = (*likeliest, (token, logprob))
        return TokenLogprob(logprob, likeliest)

    def _likeliest(self, count: int) -> tuple[tuple[int, float], ...]:
        listed = ranked(dict(zip(self.tokens, self.probabilities, strict=True)))
        return tuple((token, math.log(probability)) for token, probability in listed[:count])


def certain(token: int) -> SparseDistribution:
    """Return the distribution of one token that is sure to come."""
    return SparseDistribution((token,), (1.0,))


def distribution_of(weights: Weights) -> SparseDistribution:
    """Divide weights by their sum; those without any are left out, and one must have some."""
    probabilities = scaled_to_one(weights)
    tokens = tuple(sorted(probabilities))
    return SparseDistribution(tokens, tuple(probabilities[token] for token in tokens))


def scaled_to_one(weights: Weights) -> Weights:
    """Divide weights by their sum, and drop those that are zero."""
    total = math.fsum(weights.values())
    scaled = {token: weight / total for token, weight in weights.items()}
    return {token: weight for token, weight in scaled.items() if weight > 0.0}


def softmax(logits: Weights, temperature: float = 1.0) -> Weights:
    """Return the probabilities of logits; those too small for a number are dropped."""
    largest = max(logits.values())
    scaled = {t: math.exp((logit - largest) / temperature) for t, logit in logits.items()}
    return scaled_to_one(scaled)


def ranked(weights: Weights) -> list[tuple[int, float]]:
    """Return tokens and weights, the heaviest first and the lower id first among equals."""
    return sorted(weights.items(), key=lambda pair: (-pair[1], pair[0]))


def saturated(number: float) -> float:
    """Return the nearest number that a real engine could hold."""
    return max(-LARGEST, min(LARGEST, number))
