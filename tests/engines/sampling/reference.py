"""Sampling of one row written straight from its definition: full sorts, no shortcuts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

Probabilities = dict[int, float]


@dataclass(frozen=True)
class DryRule:
    """What DRY is set to; tokens in `breakers` end a run."""

    multiplier: float
    base: float = 2.0
    allowed_length: int = 1
    breakers: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Settings:
    """What a request may ask of a row; the defaults change nothing.

    `xtc` is the threshold where the coin fell so that it acts. `mirostat` is version and mu.
    `vocabulary` counts all ids, forbidden ones included; zero counts those of the row.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    top_a: float = 0.0
    typical_p: float = 1.0
    repetition: float = 1.0
    frequency: float = 0.0
    presence: float = 0.0
    last_n: int = -1
    bias: Mapping[int, float] = field(default_factory=dict)
    dry: DryRule | None = None
    xtc: float | None = None
    mirostat: tuple[int, float] | None = None
    temperature_last: bool = False
    forbidden: frozenset[int] = frozenset()
    vocabulary: int = 0


class AmbiguousError(Exception):
    """A threshold falls onto a probability, up to rounding: either side would be right."""


def processed(
    logits: Sequence[float], settings: Settings, prompt: Sequence[int], generated: Sequence[int]
) -> Probabilities:
    """Return the probabilities of a row after every step."""
    scores = dict(enumerate(adjusted(logits, settings, prompt, generated)))
    for token in settings.forbidden:
        scores.pop(token, None)
    return drawn_from(scores, replace(settings, vocabulary=len(logits)))


def adjusted(
    logits: Sequence[float], settings: Settings, prompt: Sequence[int], generated: Sequence[int]
) -> list[float]:
    """Return the logits after bias, penalties and DRY."""
    biased = [logit + settings.bias.get(token, 0.0) for token, logit in enumerate(logits)]
    result = penalised(biased, settings, prompt, generated)
    if settings.dry is not None:
        recent = [token for token, _ in windowed(settings, prompt, generated)]
        for token, loss in dry_losses(recent, settings.dry).items():
            result[token] -= loss
    return result


def windowed(
    settings: Settings, prompt: Sequence[int], generated: Sequence[int]
) -> list[tuple[int, bool]]:
    """Return the tokens that penalties look at, and whether each was generated."""
    history = [(token, False) for token in prompt] + [(token, True) for token in generated]
    return history if settings.last_n < 0 else history[max(0, len(history) - settings.last_n) :]


def penalised(
    logits: Sequence[float], settings: Settings, prompt: Sequence[int], generated: Sequence[int]
) -> list[float]:
    """Return the logits after repetition, frequency and presence, one id at a time."""
    window = windowed(settings, prompt, generated)
    result = list(logits)
    for token in {token for token, _ in window}:
        value = result[token]
        scale = 1 / settings.repetition if value > 0 else settings.repetition
        result[token] = value * scale
    for token in {token for token, is_generated in window if is_generated}:
        count = sum(one == token and is_generated for one, is_generated in window)
        result[token] -= settings.frequency * count + settings.presence
    return result


def dry_losses(recent: Sequence[int], rule: DryRule) -> dict[int, float]:
    """Return what each token loses that would prolong a run which occurred before."""
    longest: dict[int, int] = {}
    for place in range(len(recent) - 1):
        run = 0
        while run <= place and run < 50 and recent[place - run] == recent[-1 - run]:
            if recent[-1 - run] in rule.breakers:
                break
            run += 1
        follower = recent[place + 1]
        longest[follower] = max(run, longest.get(follower, 0))
    return {
        token: rule.multiplier * rule.base ** (run - rule.allowed_length)
        for token, run in longest.items()
        if run >= rule.allowed_length
    }


def truncated(logits: Sequence[float], settings: Settings) -> Probabilities:
    """Return the probabilities of the ids that the truncations keep."""
    return drawn_from(dict(enumerate(logits)), settings)


def drawn_from(scores: Mapping[int, float], settings: Settings) -> Probabilities:
    """Return the probabilities after temperature, truncations and XTC."""
    first = 1.0 if settings.temperature_last else settings.temperature
    steps = STEPS if settings.mirostat is None else (_mirostat,)
    kept = softmax(scores, first)
    for step in (*steps, _xtc):
        kept = scaled(step(kept, settings))
    if settings.temperature_last:
        kept = softmax({token: scores[token] for token in kept}, settings.temperature)
    return kept


def softmax(scores: Mapping[int, float], temperature: float) -> Probabilities:
    """Return probabilities, without those too small for a number."""
    peak = max(scores.values())
    return scaled({t: math.exp((score - peak) / temperature) for t, score in scores.items()})


def scaled(weights: Probabilities) -> Probabilities:
    """Return weights divided by their sum."""
    total = math.fsum(weights.values())
    return {token: weight / total for token, weight in weights.items() if weight > 0.0}


def ranked(kept: Probabilities) -> list[int]:
    """Return the ids, the likeliest first and the lower first among equals."""
    return sorted(kept, key=lambda token: (-kept[token], token))


def at_least(kept: Probabilities, threshold: float) -> Probabilities:
    """Return the ids with a probability, except where rounding decides."""
    highest = max(kept.values())
    if any(_is_near(weight, threshold) for weight in kept.values() if weight < highest):
        raise AmbiguousError
    return {token: weight for token, weight in kept.items() if weight >= threshold}


def reaching(order: list[int], kept: Probabilities, mass: float) -> Probabilities:
    """Return the first ids of an order that together reach a mass."""
    reached = 0.0
    for count, token in enumerate(order, 1):
        reached += kept[token]
        if mass > 0.0 and _is_near(reached, mass):
            raise AmbiguousError
        if reached >= mass:
            return {one: kept[one] for one in order[:count]}
    return kept


def top_k(kept: Probabilities, count: int) -> Probabilities:
    """Return the likeliest ids, and those that tie with the last."""
    if not 0 < count < len(kept):
        return kept
    last = kept[ranked(kept)[count - 1]]
    return {token: weight for token, weight in kept.items() if weight >= last}


def _top_k(kept: Probabilities, settings: Settings) -> Probabilities:
    return top_k(kept, settings.top_k)


def _top_p(kept: Probabilities, settings: Settings) -> Probabilities:
    return kept if settings.top_p >= 1.0 else reaching(ranked(kept), kept, settings.top_p)


def _min_p(kept: Probabilities, settings: Settings) -> Probabilities:
    return at_least(kept, settings.min_p * max(kept.values()))


def _top_a(kept: Probabilities, settings: Settings) -> Probabilities:
    highest = max(kept.values())
    threshold = settings.top_a * highest**2
    return at_least(kept, min(highest, threshold))


def _typical(kept: Probabilities, settings: Settings) -> Probabilities:
    if settings.typical_p >= 1.0:
        return kept
    entropy = -math.fsum(weight * math.log(weight) for weight in kept.values())
    distance = {token: abs(-math.log(weight) - entropy) for token, weight in kept.items()}
    for one in kept:
        for other in kept:
            if kept[one] != kept[other] and math.isclose(
                distance[one], distance[other], rel_tol=1e-7, abs_tol=1e-9
            ):
                raise AmbiguousError
    order = sorted(kept, key=lambda token: (round(distance[token], 12), token))
    return reaching(order, kept, settings.typical_p)


STEPS: tuple[Callable[[Probabilities, Settings], Probabilities], ...] = (
    _top_k,
    _top_p,
    _min_p,
    _top_a,
    _typical,
)


def _xtc(kept: Probabilities, settings: Settings) -> Probabilities:
    if settings.xtc is None:
        return kept
    if any(_is_near(weight, settings.xtc) for weight in kept.values()):
        raise AmbiguousError
    choices = [token for token in ranked(kept) if kept[token] >= settings.xtc]
    return {token: weight for token, weight in kept.items() if token not in choices[:-1]}


def _mirostat(kept: Probabilities, settings: Settings) -> Probabilities:
    assert settings.mirostat is not None
    version, mu = settings.mirostat
    order = ranked(kept)
    if version == 1:
        vocabulary = settings.vocabulary or len(kept)
        return top_k(kept, zipf_count([kept[token] for token in order], mu, vocabulary))
    if any(_is_near(weight, 2.0**-mu) for weight in kept.values()):
        raise AmbiguousError
    calm = {token: weight for token, weight in kept.items() if weight >= 2.0**-mu}
    return calm or {order[0]: 1.0}


def zipf_count(descending: Sequence[float], mu: float, vocabulary: int) -> int:
    """Return the k of Basu et al. for probabilities in descending order."""
    top = descending[:100]
    pairs = range(1, len(top))
    steps = {i: math.log((i + 1) / i) for i in pairs}
    falls = {i: math.log(top[i - 1] / top[i]) for i in pairs}
    if not any(falls.values()):
        return vocabulary
    s = sum(steps[i] * falls[i] for i in pairs) / sum(step**2 for step in steps.values())
    excess = s - 1
    if abs(excess) < 1e-6:
        raise AmbiguousError
    try:
        k = (excess * 2**mu / (1 - vocabulary**-excess)) ** (1 / s)
    except OverflowError:
        return vocabulary
    if _is_near(k % 1.0, 0.5):
        raise AmbiguousError
    return min(vocabulary, max(1, round(k)))


def _is_near(left: float, right: float) -> bool:
    return math.isclose(left, right, rel_tol=1e-7)
