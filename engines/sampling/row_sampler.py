"""One request's sampling settings, and what they make of one row of logits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np

from engines.sampling.bias import Bias
from engines.sampling.dry import Dry
from engines.sampling.kept import Kept
from engines.sampling.logits import Row
from engines.sampling.logprobs import of_kept, of_logits
from engines.sampling.mirostat import Mirostat
from engines.sampling.one_hot import OneHot
from engines.sampling.penalties import Penalties
from engines.sampling.permission import UNRESTRICTED, Permission
from engines.sampling.truncation import NO_TRUNCATION, Truncating, Truncation, weights_of
from engines.sampling.xtc import Xtc
from service.generation.config import GREEDY_BELOW, ResolvedGenerationConfig
from service.generation.sampling import SamplerOrder
from service.speculation.contract import Distribution, History, SamplingInput, TokenLogprob


class Adjustment(Protocol):
    """A change of logits at one history."""

    def apply(self, row: Row, history: History) -> Row:
        """Return the changed logits `[vocabulary]`; the given row is not modified."""


@dataclass(frozen=True, slots=True)
class ProcessedRow:
    """One row at its history: its adjusted logits `[vocabulary]`, and what is drawn from."""

    logits: Row
    distribution: OneHot | Kept

    def logprob(self, token: int, alternatives: int) -> TokenLogprob:
        """Return a token's log-probability and those of the likeliest."""
        if isinstance(self.distribution, Kept):
            return of_kept(self.distribution, token, alternatives)
        return of_logits(self.logits, token, alternatives)


@dataclass(frozen=True, slots=True)
class RowSampler:
    """A lane's sampling state. Only a constraint and Mirostat advance with committed tokens.

    Rows are processed in this order: what is forbidden, bias, penalties, DRY; then the
    temperature, truncation and XTC, with the temperature last where `temperature_last`.
    """

    temperature: float = 0.0
    adjustments: tuple[Adjustment, ...] = ()
    truncation: Truncating = NO_TRUNCATION
    permission: Permission = UNRESTRICTED
    xtc: Xtc | None = None
    temperature_last: bool = False

    @classmethod
    def from_input(cls, request: SamplingInput) -> Self:
        """Take over resolved settings; a negligible temperature becomes zero."""
        config = request.config
        common = cls(
            adjustments=tuple(_adjustments(request)),
            permission=Permission.of(request),
        )
        if config.temperature < GREEDY_BELOW:
            return common
        return replace(
            common,
            temperature=config.temperature,
            truncation=_truncation(config),
            xtc=_xtc(request),
            temperature_last=config.sampler_order is SamplerOrder.TEMPERATURE_LAST,
        )

    @property
    def supports_optimistic_promotion(self) -> bool:
        return not isinstance(self.truncation, Mirostat)

    @property
    def vocabulary(self) -> int | None:
        """Return how many ids there are, None where rows have no padding."""
        return self.permission.vocabulary

    @property
    def is_plain_argmax(self) -> bool:
        """Whether the highest raw logit decides alone, so that rows need no history."""
        plain = not self.adjustments and self.permission.is_unrestricted
        return self.temperature == 0.0 and plain

    def advance(self, distribution: Distribution, token: int) -> Self:
        permission, truncation = self.permission.after(token), self.truncation
        if isinstance(truncation, Mirostat):
            truncation = truncation.after(distribution.probability(token))
        if permission is self.permission and truncation is self.truncation:
            return self
        return replace(self, permission=permission, truncation=truncation)

    def grammar_is_complete(self) -> bool:
        following = self.permission.following
        return following is not None and following.constraint.is_complete()

    def prefix_is_complete(self, generated: Sequence[int]) -> bool:
        return self.permission.is_complete(generated)

    def may_follow(self, generated: Sequence[int], token: int) -> bool:
        return self.permission.permits(generated, token)

    def prefetch(self, generated: Sequence[int], proposals: Sequence[int]) -> None:
        """Let what the rows of a block forbid be computed beside the pass."""
        if self.permission.following is not None:
            self.permission.following.prefetch(generated, proposals)

    def process(self, row: Row, history: History) -> ProcessedRow:
        """Process one row of logits `[vocabulary]` at its own history.

        Raises:
            InvalidLogits: the row holds a NaN or an infinity.
            NothingAllowed: the request forbids every token.
            ConstraintFailed: what a constraint forbids cannot be computed.
        """
        logits = self.permission.apply(row, history)
        for adjustment in self.adjustments:
            logits = adjustment.apply(logits, history)
        best = int(logits.argmax())
        peak = float(logits[best])
        # A NaN is the maximum of any row that holds one.
        if not np.isfinite(peak):
            raise self.permission.refusal(row, history)
        if self.temperature == 0.0:
            return ProcessedRow(logits, OneHot(best))
        with np.errstate(over="ignore"):
            return ProcessedRow(logits, self._sampled(logits, peak, len(history.generated)))

    def distribution(self, row: Row, history: History) -> OneHot | Kept:
        """Return what is drawn from at one row, processed as `process` does."""
        return self.process(row, history).distribution

    def _sampled(self, logits: Row, peak: float, position: int) -> Kept:
        first = 1.0 if self.temperature_last else self.temperature
        kept = self.truncation.keep(logits, peak, first)
        if self.xtc is not None:
            kept = self.xtc.thin(kept, position)
        return _heated(kept, logits, self.temperature) if self.temperature_last else kept


def _heated(kept: Kept, logits: Row, temperature: float) -> Kept:
    """Return the kept ids at a temperature."""
    left = logits[kept.ids]
    return Kept.of_weights(kept.ids, weights_of(left, float(left.max()), temperature))


def _adjustments(request: SamplingInput) -> Iterator[Adjustment]:
    config = request.config
    if config.logit_bias:
        yield Bias.of(config.logit_bias)
    penalties = Penalties(
        repetition=config.repetition_penalty,
        frequency=config.frequency_penalty,
        presence=config.presence_penalty,
        last_n=config.repeat_last_n,
    )
    if not penalties.is_neutral:
        yield penalties
    dry = config.dry
    if dry is not None and dry.multiplier > 0.0 and config.repeat_last_n:
        yield Dry(
            multiplier=dry.multiplier,
            base=dry.base,
            allowed_length=dry.allowed_length,
            last_n=config.repeat_last_n,
            breakers=request.run_breakers,
        )


def _truncation(config: ResolvedGenerationConfig) -> Truncating:
    if config.mirostat is not None:
        return Mirostat.of(config.mirostat)
    return Truncation(config.top_k, config.top_p, config.min_p, config.top_a, config.typical_p)


def _xtc(request: SamplingInput) -> Xtc | None:
    xtc = request.config.xtc
    if xtc is None or xtc.probability == 0.0 or request.coins is None:
        return None
    return Xtc(xtc.probability, xtc.threshold, request.coins)
