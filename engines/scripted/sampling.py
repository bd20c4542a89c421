"""Processed distributions in pure Python: few tokens with probability, all others with none."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from engines.scripted.law import Logits, most_likely
from service.generation.config import ResolvedGenerationConfig
from service.speculation.contract import Distribution, History, Sampler, TokenLogprob, Tokens

Weights = dict[int, float]


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


def certain(token: int) -> SparseDistribution:
    """Return the distribution of one token that is sure to come."""
    return SparseDistribution((token,), (1.0,))


def distribution_of(weights: Weights) -> SparseDistribution:
    """Divide weights by their sum; those without any are left out, and one must have some."""
    kept = {token: weight for token, weight in weights.items() if weight > 0.0}
    total = math.fsum(kept.values())
    tokens = tuple(sorted(kept))
    return SparseDistribution(tokens, tuple(kept[token] / total for token in tokens))


@dataclass(frozen=True, slots=True)
class ScriptedSampler:
    """One request's processing; no setting makes it depend on what was committed."""

    config: ResolvedGenerationConfig

    @property
    def temperature(self) -> float:
        """Return the temperature; zero is greedy."""
        return self.config.temperature

    @property
    def supports_optimistic_promotion(self) -> bool:
        """Whether branches may be promoted: always."""
        return True

    def advance(self, distribution: Distribution, token: int) -> Sampler:
        """Return the same state: rows look at their history alone."""
        del distribution, token
        return self

    def grammar_is_complete(self) -> bool:
        """Whether a grammar is complete: there is none."""
        return False

    def prefix_is_complete(self, generated: Sequence[int]) -> bool:
        """Whether a tentative output completes a grammar: there is none."""
        del generated
        return False

    def may_follow(self, generated: Sequence[int], token: int) -> bool:
        """Whether a token may follow: nothing is forbidden."""
        del generated, token
        return True

    def logprob(
        self, logits: Logits, history: History, token: int, alternatives: int
    ) -> TokenLogprob:
        """Return a token's log-probability in the processed row."""
        distribution = self.process(logits, history)
        if self.temperature == 0.0:
            penalised = _penalised(dict(logits), history, self.config)
            distribution = distribution_of(softmax(penalised))
        return logprob_of(distribution, token, alternatives)

    def process(self, logits: Logits, history: History) -> SparseDistribution:
        """Apply penalties, temperature, top-k, top-p and min-p, in this order."""
        penalised = _penalised(dict(logits), history, self.config)
        if self.temperature == 0.0:
            return certain(most_likely(tuple(penalised.items())))
        weights = softmax(penalised, self.temperature)
        for truncate in (_top_k, _top_p, _min_p):
            weights = truncate(weights, self.config)
        return distribution_of(weights)


def logprob_of(distribution: SparseDistribution, token: int, alternatives: int) -> TokenLogprob:
    """Return a token's log-probability, and those of the likeliest tokens, itself among them."""
    probability = distribution.probability(token)
    logprob = math.log(probability) if probability else -math.inf
    ranked = sorted(
        zip(distribution.tokens, distribution.probabilities, strict=True),
        key=lambda pair: (-pair[1], pair[0]),
    )
    likeliest = [(each, math.log(mass)) for each, mass in ranked[:alternatives]]
    if alternatives and all(each != token for each, _ in likeliest):
        likeliest = [*likeliest[: alternatives - 1], (token, logprob)]
    return TokenLogprob(logprob, tuple(likeliest))


def _penalised(logits: Weights, history: History, config: ResolvedGenerationConfig) -> Weights:
    """Penalise each distinct earlier token once by ratio, and generated ones by count."""
    seen = set(_window((*history.prompt, *history.generated), config.repeat_last_n))
    counts = Counter(_window(history.generated, config.repeat_last_n))
    result = dict(logits)
    for token, logit in logits.items():
        penalty = config.repetition_penalty if token in seen else 1.0
        scaled = logit / penalty if logit > 0.0 else logit * penalty
        count = counts[token]
        presence = config.presence_penalty if count else 0.0
        result[token] = scaled - config.frequency_penalty * count - presence
    return result


def _window(tokens: Tokens, length: int) -> Tokens:
    """Return the last tokens: all for a negative length, none for zero."""
    return tokens if length < 0 else tokens[max(0, len(tokens) - length) :]


def softmax(logits: Weights, temperature: float = 1.0) -> Weights:
    """Return the probabilities of logits."""
    largest = max(logits.values())
    scaled = {t: math.exp((logit - largest) / temperature) for t, logit in logits.items()}
    return _scaled_to_one(scaled)


def _scaled_to_one(weights: Weights) -> Weights:
    total = math.fsum(weights.values())
    return {token: weight / total for token, weight in weights.items()}


def _top_k(weights: Weights, config: ResolvedGenerationConfig) -> Weights:
    """Keep the k likeliest tokens and whatever ties with the last of them; zero keeps all."""
    if not 0 < config.top_k < len(weights):
        return weights
    least = sorted(weights.values(), reverse=True)[config.top_k - 1]
    return _scaled_to_one({token: w for token, w in weights.items() if w >= least})


def _top_p(weights: Weights, config: ResolvedGenerationConfig) -> Weights:
    """Keep the likeliest tokens up to and including the one that reaches p."""
    if config.top_p >= 1.0:
        return weights
    kept: Weights = {}
    reached = 0.0
    for token, weight in sorted(weights.items(), key=lambda pair: (-pair[1], pair[0])):
        kept[token] = weight
        reached += weight
        if reached >= config.top_p:
            break
    return _scaled_to_one(kept)


def _min_p(weights: Weights, config: ResolvedGenerationConfig) -> Weights:
    """Keep the tokens with at least a share of the likeliest one's probability."""
    least = config.min_p * max(weights.values())
    return {token: weight for token, weight in weights.items() if weight >= least}
