"""Mirostat: a truncation that follows how surprising the output has been.

Its state is μ, the most surprise in bits that a token may have. It starts at twice the wanted
surprise tau, and every committed token moves it.

Source: Basu et al. 2021, arXiv:2007.14966; version 2 is llama.cpp's simplification.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from engines.scripted.distribution import Weights, ranked, saturated
from engines.scripted.truncation import likeliest
from service.generation.sampling import MirostatSettings

_ZIPF_TOKENS = 100
_FLATTEST = 1e-9


def surprise(probability: float) -> float:
    """Return the surprise of a token, in bits."""
    return -math.log2(probability)


def moved(mu: float, settings: MirostatSettings, probability: float) -> float:
    """Return μ after a token of this probability was committed."""
    return saturated(mu - settings.eta * (surprise(probability) - settings.tau))


def unsurprising(
    weights: Weights, settings: MirostatSettings, mu: float, vocabulary_size: int
) -> Weights:
    """Keep the tokens that μ lets through, at least the likeliest.

    Args:
        weights: probabilities, which sum to one.
        settings: version 1 keeps the k likeliest, version 2 those with at most μ bits.
        mu: the most surprise, in bits.
        vocabulary_size: the N of version 1.
    """
    order = ranked(weights)
    if settings.version == 1:
        return likeliest(weights, _zipf_top_k([p for _, p in order], mu, vocabulary_size))
    kept = {token: weight for token, weight in weights.items() if surprise(weight) <= mu}
    return kept or dict(order[:1])


def _zipf_top_k(probabilities: Sequence[float], mu: float, vocabulary_size: int) -> int:
    """Return how many tokens to keep, by the paper's estimate, in logarithms.

    k = (ε · 2^μ / (1 - N^-ε))^(1 / s) with ε = s - 1, rounded, and at least one.
    """
    exponent = _zipf_exponent(probabilities)
    excess = exponent - 1.0
    size = math.log(vocabulary_size)
    spread = excess / -math.expm1(-excess * size) if excess else 1.0 / size
    logarithm = (math.log(spread) + mu * math.log(2.0)) / exponent
    return max(1, round(math.exp(min(logarithm, math.log(len(probabilities))))))


def _zipf_exponent(probabilities: Sequence[float]) -> float:
    """Return the s of Zipf's law that fits the likeliest tokens best, never quite zero.

    The least-squares estimate over ratios of neighbours, which are in descending order.
    """
    pairs = tuple(pairwise(probabilities[:_ZIPF_TOKENS]))
    steps = [math.log((rank + 1) / rank) for rank in range(1, len(pairs) + 1)]
    falls = [math.log(more / less) for more, less in pairs]
    products = math.fsum(step * fall for step, fall in zip(steps, falls, strict=True))
    squares = math.fsum(step**2 for step in steps)
    return max(_FLATTEST, products / squares) if pairs else 1.0
