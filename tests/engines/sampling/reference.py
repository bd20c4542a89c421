"""Sampling of one row written straight from its definition: full sorts, no shortcuts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Probabilities = dict[int, float]


@dataclass(frozen=True)
class Settings:
    """What a request may ask of a row; the defaults change nothing."""

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition: float = 1.0
    frequency: float = 0.0
    presence: float = 0.0
    last_n: int = -1


class AmbiguousError(Exception):
    """A threshold falls onto a probability, up to rounding: either side would be right."""


def penalised(
    logits: Sequence[float], settings: Settings, prompt: Sequence[int], generated: Sequence[int]
) -> list[float]:
    """Return the logits after repetition, frequency and presence, one id at a time."""
    history = [(token, False) for token in prompt] + [(token, True) for token in generated]
    window = history if settings.last_n < 0 else history[max(0, len(history) - settings.last_n) :]
    result = list(logits)
    for token in {token for token, _ in window}:
        value = result[token]
        scale = 1 / settings.repetition if value > 0 else settings.repetition
        result[token] = value * scale
    for token in {token for token, is_generated in window if is_generated}:
        count = sum(one == token and is_generated for one, is_generated in window)
        result[token] -= settings.frequency * count + settings.presence
    return result


def truncated(logits: Sequence[float], settings: Settings) -> Probabilities:
    """Return the probabilities of the ids that temperature, top-k, top-p and min-p keep."""
    order = sorted(range(len(logits)), key=lambda token: (-logits[token], token))
    if 0 < settings.top_k < len(order):
        last = logits[order[settings.top_k - 1]]
        order = [token for token in order if logits[token] >= last]
    weights = {
        token: math.exp((logits[token] - logits[order[0]]) / settings.temperature)
        for token in order
    }
    if settings.top_p < 1.0:
        order = _nucleus(order, weights, settings.top_p)
    threshold = settings.min_p * weights[order[0]]
    if any(_is_near(weights[token], threshold) for token in order[1:]):
        raise AmbiguousError
    kept = [token for token in order if weights[token] >= threshold]
    total = math.fsum(weights[token] for token in kept)
    return {token: weights[token] / total for token in kept if weights[token] > 0.0}


def _nucleus(order: list[int], weights: Probabilities, top_p: float) -> list[int]:
    mass = top_p * math.fsum(weights.values())
    reached = 0.0
    for count, token in enumerate(order, 1):
        reached += weights[token]
        if mass > 0.0 and _is_near(reached, mass):
            raise AmbiguousError
        if reached >= mass:
            return order[:count]
    return order


def _is_near(left: float, right: float) -> bool:
    return math.isclose(left, right, rel_tol=1e-7)
