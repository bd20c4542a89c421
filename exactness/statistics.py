"""How far counts may stray from a law: chi-square, and a bound on total variation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

SIGNIFICANCE = 1e-6
"""A right sampler fails one test in so many; the seeds are fixed, so a test repeats exactly."""

FEWEST_EXPECTED = 5.0
"""Cells with less are counted as one: below, the chi-square distribution is a poor guide."""

Cell = TypeVar("Cell")

_STEPS = 10_000
_PRECISION = 1e-15


def chi_square_p(counts: Mapping[Cell, float], law: Mapping[Cell, float]) -> float:
    """Return how likely counts at least this far from the law are, were they drawn from it.

    Zero if anything was counted to which the law gives no probability.
    """
    if any(count and law.get(cell, 0.0) <= 0.0 for cell, count in counts.items()):
        return 0.0
    total = sum(counts.values())
    cells = [(total * mass, counts.get(cell, 0)) for cell, mass in law.items()]
    common = _without_rare(cells)
    statistic = sum((count - mean) ** 2 / mean for mean, count in common)
    return upper_gamma((len(common) - 1) / 2, statistic / 2) if len(common) > 1 else 1.0


def _without_rare(cells: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return means and counts, the rare as one, with the least common where that is rare too."""
    common = sorted(cell for cell in cells if cell[0] >= FEWEST_EXPECTED)
    rare = [cell for cell in cells if cell[0] < FEWEST_EXPECTED]
    if sum(mean for mean, _ in rare) < FEWEST_EXPECTED:
        rare += common[:1]
        common = common[1:]
    return [*common, (sum(mean for mean, _ in rare), sum(count for _, count in rare))]


def upper_gamma(shape: float, x: float) -> float:
    """Return the regularised upper incomplete gamma function.

    Source: Abramowitz and Stegun, 6.5.29 (a series, for small x) and 6.5.31 (a continued
    fraction, evaluated by Lentz's method).
    """
    if x <= 0.0:
        return 1.0
    scale = math.exp(shape * math.log(x) - x - math.lgamma(shape))
    if x < shape + 1.0:
        return 1.0 - scale * _series(shape, x)
    return scale * _fraction(shape, x)


def _series(shape: float, x: float) -> float:
    term = total = 1.0 / shape
    for step in range(1, _STEPS):
        term *= x / (shape + step)
        total += term
        if term < total * _PRECISION:
            break
    return total


def _fraction(shape: float, x: float) -> float:
    tiny = 1e-300
    b = x + 1.0 - shape
    c, d = 1.0 / tiny, 1.0 / b
    value = d
    for step in range(1, _STEPS):
        a, b = -step * (step - shape), b + 2.0
        d = 1.0 / ((a * d + b) or tiny)
        c = (b + a / c) or tiny
        value *= c * d
        if abs(c * d - 1.0) < _PRECISION:
            break
    return value


def total_variation(one: Mapping[Cell, float], other: Mapping[Cell, float]) -> float:
    """Return half the sum of the differences of two laws."""
    cells = one.keys() | other.keys()
    return sum(abs(one.get(cell, 0.0) - other.get(cell, 0.0)) for cell in cells) / 2


def total_variation_bound(law: Mapping[Cell, float], samples: int) -> float:
    """Return what the distance of so many samples' frequencies from their law stays below.

    It is exceeded with a probability of at most `SIGNIFICANCE`. Its mean is at most half the sum
    of the standard deviations of the frequencies (Jensen's inequality), and one sample moves it
    by at most 1/n, so that it exceeds its mean by e with a probability of at most exp(-2 n e^2)
    (McDiarmid 1989, "On the method of bounded differences").
    """
    mean = sum(math.sqrt(mass * (1.0 - mass) / samples) for mass in law.values()) / 2
    return mean + math.sqrt(math.log(1.0 / SIGNIFICANCE) / (2.0 * samples))
