"""DRY: a token that would make a repeated run longer costs more, the longer the run.

Source: "Don't Repeat Yourself" sampling, text-generation-webui, pull request 5677.
"""

from __future__ import annotations

import math
from itertools import repeat

from service.generation.sampling import DrySettings
from service.speculation.contract import Tokens

LONGEST_RUN = 50
"""Longer runs count as runs of this length."""


def dry_penalties(
    recent: Tokens, settings: DrySettings | None, breakers: frozenset[int]
) -> dict[int, float]:
    """Return what to subtract from the logits of the tokens that would continue a run.

    Args:
        recent: the tokens to look at, the latest last.
        settings: None is off.
        breakers: tokens that end a run and belong to none.
    """
    if settings is None or not settings.multiplier:
        return {}
    allowed = settings.allowed_length
    return {
        token: settings.multiplier * math.prod(repeat(settings.base, length - allowed))
        for token, length in _runs(recent, breakers).items()
        if length >= allowed
    }


def _runs(recent: Tokens, breakers: frozenset[int]) -> dict[int, int]:
    """Return for each token how long a run it would continue, at the place that fits best."""
    longest: dict[int, int] = {}
    for place in range(1, len(recent)):
        length = _match(recent, place, breakers)
        longest[recent[place]] = max(length, longest.get(recent[place], 0))
    return longest


def _match(recent: Tokens, place: int, breakers: frozenset[int]) -> int:
    """Return how many tokens before `place` equal the last ones, up to a breaker."""
    most = min(place, LONGEST_RUN)
    for length in range(most):
        last = recent[-1 - length]
        if last in breakers or recent[place - 1 - length] != last:
            return length
    return most
