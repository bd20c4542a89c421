"""A few of all combinations, such that every pair of values of two axes occurs together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product

Combination = dict[str, object]
Pair = tuple[tuple[str, int], tuple[str, int]]


def every(axes: Mapping[str, Sequence[object]]) -> list[Combination]:
    """Return all combinations of one value of each axis."""
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


def pairwise(axes: Mapping[str, Sequence[object]]) -> list[Combination]:
    """Return a selection that holds every pair; the same one for the same axes.

    Greedy: always the first of the combinations that add the most pairs.
    """
    places = list(product(*(range(len(values)) for values in axes.values())))
    names = list(axes)
    pairs = {place: _pairs(names, place) for place in places}
    missing = set().union(*pairs.values())
    chosen: list[Combination] = []
    while missing:
        best = max(places, key=lambda place: len(pairs[place] & missing))
        missing -= pairs[best]
        chosen.append({name: axes[name][at] for name, at in zip(names, best, strict=True)})
    return chosen


def _pairs(names: Sequence[str], place: tuple[int, ...]) -> frozenset[Pair]:
    return frozenset(combinations(zip(names, place, strict=True), 2))
