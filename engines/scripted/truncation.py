"""Which of the possible tokens are left to sample from.

Every step looks at the probabilities of what the step before it left, scaled to one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from engines.scripted.distribution import Weights, ranked, scaled_to_one
from service.generation.config import ResolvedGenerationConfig
from service.generation.sampling import XtcSettings


def truncated(weights: Weights, config: ResolvedGenerationConfig) -> Weights:
    """Apply top-k, top-p, min-p, top-a and typical-p, in this order."""
    for truncate in (_top_k, _top_p, _min_p, _top_a, _typical_p):
        weights = scaled_to_one(truncate(weights, config))
    return weights


def likeliest(weights: Weights, count: int) -> Weights:
    """Keep the likeliest tokens and whatever ties with the last of them."""
    if count >= len(weights):
        return weights
    least = sorted(weights.values(), reverse=True)[count - 1]
    return {token: weight for token, weight in weights.items() if weight >= least}


def without_top_choices(
    weights: Weights, settings: XtcSettings | None, coin: float | None
) -> Weights:
    """Where the coin says so, drop the tokens above a threshold except the least likely of them.

    Among equals the highest id counts as the least likely. One token above the threshold stays.

    Source: "Exclude Top Choices" sampling, text-generation-webui, pull request 6335.
    """
    if settings is None or coin is None or coin >= settings.probability:
        return weights
    choices = [token for token, weight in ranked(weights) if weight >= settings.threshold]
    dropped = frozenset(choices[:-1])
    return scaled_to_one({token: w for token, w in weights.items() if token not in dropped})


def _top_k(weights: Weights, config: ResolvedGenerationConfig) -> Weights:
    """Keep the k likeliest tokens and their ties; zero keeps all."""
    return likeliest(weights, config.top_k or len(weights))


def _top_p(weights: Weights, config: ResolvedGenerationConfig) -> Weights:
    """Keep the likeliest tokens up to and including the one that reaches p."""
    if config.top_p >= 1.0:
        return weights
    return _reaching(ranked(weights), config.top_p)


def _min_p(weights: Weights, config: ResolvedGenerationConfig) -> Weights:
    """Keep the tokens with at least a share of the likeliest one's probability."""
    least = config.min_p * max(weights.values())
    return {token: weight for token, weight in weights.items() if weight >= least}


def _top_a(weights: Weights, config: ResolvedGenerationConfig) -> Weights:
    """Keep the tokens with at least a share of the likeliest one's square, and itself."""
    most = max(weights.values())
    least = min(most, config.top_a * most**2)
    return {token: weight for token, weight in weights.items() if weight >= least}


def _typical_p(weights: Weights, config: ResolvedGenerationConfig) -> Weights:
    """Keep the tokens whose surprise is nearest to the mean surprise, until they reach p.

    Source: Meister et al. 2022, arXiv:2202.00666.
    """
    if config.typical_p >= 1.0:
        return weights
    entropy = -math.fsum(weight * math.log(weight) for weight in weights.values())
    nearest = sorted(weights.items(), key=lambda pair: (abs(math.log(pair[1]) + entropy), pair[0]))
    return _reaching(nearest, config.typical_p)


def _reaching(ordered: Iterable[tuple[int, float]], mass: float) -> Weights:
    """Keep tokens up to and including the one with which they reach a mass: at least one."""
    kept: Weights = {}
    reached = 0.0
    for token, weight in ordered:
        kept[token] = weight
        reached += weight
        if reached >= mass:
            break
    return kept
