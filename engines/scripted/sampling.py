"""One request's sampling: from a law's logits to the distribution that a token comes from.

Rows are processed step by step, in plain arithmetic over the few tokens that a law lists, so
that every step can be read, and so that engines with numerics can be held against it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from engines.scripted.distribution import (
    SparseDistribution,
    Weights,
    certain,
    distribution_of,
    scaled_to_one,
    softmax,
)
from engines.scripted.filtering import (
    permit,
    permitted,
    row_rules,
    setting_rules,
)
from engines.scripted.floor import with_floor, without_padding
from engines.scripted.law import Logits, most_likely
from engines.scripted.mirostat import moved, unsurprising
from engines.scripted.penalties import biased, penalised
from engines.scripted.truncation import truncated, without_top_choices
from service.generation.config import ResolvedGenerationConfig
from service.generation.sampling import MirostatSettings, SamplerOrder
from service.speculation.contract import (
    Constraint,
    Distribution,
    History,
    SamplingInput,
    TokenLogprob,
)


@dataclass(frozen=True, slots=True)
class ScriptedSampler:
    """One request's processing after `committed` tokens.

    `request.constraint` is the constraint's state after these tokens; rows further on walk it
    along their history. `mu` is Mirostat's state, None where nothing has moved it yet.
    """

    request: SamplingInput
    committed: int = 0
    mu: float | None = None

    @property
    def temperature(self) -> float:
        """Return the temperature; zero is greedy."""
        return self._config.temperature

    @property
    def supports_optimistic_promotion(self) -> bool:
        """Whether branches may be promoted: unless Mirostat moves with every token."""
        return self._mirostat is None

    def advance(self, distribution: Distribution, token: int) -> ScriptedSampler:
        """Return the state after one more token, with the constraint and Mirostat moved."""
        mirostat, probability = self._mirostat, distribution.probability(token)
        mu = self.mu
        if mirostat is not None and probability > 0.0:
            mu = moved(self._mu(mirostat), mirostat, probability)
        request = replace(self.request, constraint=self._constraint_after((token,)))
        return replace(self, request=request, committed=self.committed + 1, mu=mu)

    def grammar_is_complete(self) -> bool:
        """Whether what was committed matches, and only the end may follow."""
        constraint = self.request.constraint
        return constraint is not None and constraint.is_complete()

    def prefix_is_complete(self, generated: Sequence[int]) -> bool:
        """Whether a tentative output matches, and only the end may follow."""
        constraint = self._constraint_after(generated[self.committed :])
        return constraint is not None and constraint.is_complete()

    def may_follow(self, generated: Sequence[int], token: int) -> bool:
        """Whether settings and constraint permit a token after a tentative output."""
        if not 0 <= token < self.request.vocabulary_size:
            return False
        if not permit(token, setting_rules(self.request, len(generated))):
            return False
        constraint = self._constraint_after(generated[self.committed :])
        return constraint is None or constraint.permits(token)

    def process(self, logits: Logits, history: History) -> SparseDistribution:
        """Return the distribution of the token after a history.

        Raises:
            NothingAllowed: settings and constraint together leave no token.
            ConstraintFailed: the constraint cannot say what may follow.
        """
        scores = self._scores(logits, history)
        if self.temperature == 0.0:
            return certain(most_likely(tuple(scores.items())))
        return distribution_of(self._weights(scores, len(history.generated)))

    def logprob(
        self, logits: Logits, history: History, token: int, alternatives: int
    ) -> TokenLogprob:
        """Return a token's log-probability in the processed row.

        Raises:
            NothingAllowed: as `process`.
            ConstraintFailed: as `process`.
        """
        scores = self._scores(logits, history)
        if self.temperature == 0.0:
            weights = softmax(scores)
        else:
            weights = self._weights(scores, len(history.generated))
        return distribution_of(weights).logprob(token, alternatives)

    @property
    def _config(self) -> ResolvedGenerationConfig:
        return self.request.config

    @property
    def _mirostat(self) -> MirostatSettings | None:
        """Return Mirostat's settings where it acts."""
        return self._config.mirostat if self.temperature > 0.0 else None

    def _mu(self, mirostat: MirostatSettings) -> float:
        return 2.0 * mirostat.tau if self.mu is None else self.mu

    def _constraint_after(self, tokens: Iterable[int]) -> Constraint | None:
        """Return the constraint after more tokens; those that end the output do not move it."""
        constraint = self.request.constraint
        for token in tokens:
            if constraint is not None and token not in self.request.end_token_ids:
                constraint = constraint.after(token)
        return constraint

    def _scores(self, logits: Logits, history: History) -> Weights:
        """Return the logits that are permitted, biased and penalised.

        Tokens that the law does not list count where settings choose among them.
        """
        config, size = self._config, self.request.vocabulary_size
        constraint = self._constraint_after(history.generated[self.committed :])
        rules = row_rules(self.request, constraint, len(history.generated))
        row = without_padding(logits, size)
        if rules or config.logit_bias or not row:
            row = with_floor(logits, size)
        kept = permitted(row, rules, len(history.generated))
        shifted = biased(kept, config.logit_bias)
        return penalised(shifted, history, config, self.request.run_breakers)

    def _weights(self, scores: Weights, position: int) -> Weights:
        """Return the probabilities after the temperature and every truncation."""
        config, coins = self._config, self.request.coins
        is_last = config.sampler_order is SamplerOrder.TEMPERATURE_LAST
        weights = softmax(scores, 1.0 if is_last else self.temperature)
        weights = self._truncated(weights)
        coin = None if coins is None else coins.at(position)
        weights = without_top_choices(weights, config.xtc, coin)
        if not is_last:
            return weights
        return softmax({token: scores[token] for token in weights}, self.temperature)

    def _truncated(self, weights: Weights) -> Weights:
        mirostat = self._mirostat
        if mirostat is None:
            return truncated(weights, self._config)
        size = self.request.vocabulary_size
        return scaled_to_one(unsurprising(weights, mirostat, self._mu(mirostat), size))
