"""One request's sampling settings, and what they make of one row of logits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.sampling.kept import Kept
from engines.sampling.logprobs import of_kept, of_logits
from engines.sampling.one_hot import OneHot
from engines.sampling.penalties import NO_PENALTIES, Penalties
from engines.sampling.truncation import NO_TRUNCATION, Truncation
from service.errors import InvalidLogits
from service.generation.config import GREEDY_BELOW, ResolvedGenerationConfig
from service.speculation.contract import Distribution, History, TokenLogprob

Row = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class RowSampler:
    """A lane's sampling state; nothing here depends on committed tokens, so it never advances.

    Rows are processed in the order penalties, temperature, top-k, top-p, min-p.
    """

    temperature: float = 0.0
    penalties: Penalties = NO_PENALTIES
    truncation: Truncation = NO_TRUNCATION

    @classmethod
    def from_config(cls, config: ResolvedGenerationConfig) -> RowSampler:
        """Take over resolved settings; a negligible temperature becomes zero."""
        return cls(
            temperature=config.temperature if config.temperature >= GREEDY_BELOW else 0.0,
            penalties=Penalties(
                repetition=config.repetition_penalty,
                frequency=config.frequency_penalty,
                presence=config.presence_penalty,
                last_n=config.repeat_last_n,
            ),
            truncation=Truncation(config.top_k, config.top_p, config.min_p),
        )

    @property
    def supports_optimistic_promotion(self) -> bool:
        return True

    @property
    def is_plain_argmax(self) -> bool:
        """Whether the highest raw logit decides alone, so that rows need no history."""
        return self.temperature == 0.0 and self.penalties.is_neutral

    def advance(self, distribution: Distribution, token: int) -> RowSampler:
        del distribution, token
        return self

    def grammar_is_complete(self) -> bool:
        return False

    def prefix_is_complete(self, generated: Sequence[int]) -> bool:
        del generated
        return False

    def may_follow(self, generated: Sequence[int], token: int) -> bool:
        del generated, token
        return True

    def logprob(self, row: Row, history: History, token: int, alternatives: int) -> TokenLogprob:
        """Return a token's log-probability in the processed row `[vocabulary]`."""
        distribution = self.distribution(row, history)
        if isinstance(distribution, Kept):
            return of_kept(distribution, token, alternatives)
        return of_logits(self.penalties.apply(row, history), token, alternatives)

    def distribution(self, row: Row, history: History) -> Distribution:
        """Process one row of logits `[vocabulary]` at its own history.

        Raises:
            InvalidLogits: the row holds a NaN or an infinity, or nothing is allowed.
        """
        penalised = self.penalties.apply(row, history)
        best = int(penalised.argmax())
        peak = float(penalised[best])
        # A NaN is the maximum of any row that holds one.
        if not np.isfinite(peak):
            raise InvalidLogits(peak)
        if self.temperature == 0.0:
            return OneHot(best)
        with np.errstate(over="ignore"):
            return self.truncation.keep(penalised, peak, self.temperature)
