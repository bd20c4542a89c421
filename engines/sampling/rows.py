"""The rows of a pass as the core reads them: lane by lane, each at its own history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.sampling.logprobs import of_logits
from engines.sampling.one_hot import OneHot
from engines.sampling.row_sampler import RowSampler
from service.errors import InvalidLogits
from service.speculation.contract import (
    Distribution,
    History,
    Sampler,
    TargetRows,
    TokenLogprob,
    Tokens,
)

Logits = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class LaneSpan:
    """One lane's consecutive rows of a pass, from row `first` on.

    There is one row more than there are proposals: row i follows `history` and
    the proposals before it. Before them may come `prompt_rows` rows inside the prompt.
    """

    first: int
    sampler: Sampler
    history: History
    proposals: Tokens = ()
    prompt_rows: int = 0

    @property
    def rows(self) -> int:
        """Return how many rows the lane has."""
        return self.prompt_rows + len(self.proposals) + 1


@dataclass(frozen=True, slots=True)
class GreedyRows:
    """Rows decided by their highest raw logit: its ids `[n]` and the logits themselves `[n]`."""

    tokens: NDArray[np.intp]
    peaks: Logits
    logits: Logits
    span: LaneSpan

    def distribution(self, row: int, sampler: Sampler) -> Distribution:
        del sampler
        peak = float(self.peaks[row])
        if not np.isfinite(peak):
            raise InvalidLogits(peak)
        return OneHot(int(self.tokens[row]))

    def logprob(self, row: int, sampler: Sampler, token: int, alternatives: int) -> TokenLogprob:
        return ProcessedRows(self.logits, self.span).logprob(row, sampler, token, alternatives)

    def raw_logprob(self, row: int, token: int, alternatives: int) -> TokenLogprob:
        return of_logits(self.logits[row], token, alternatives)


@dataclass(frozen=True, slots=True)
class ProcessedRows:
    """Rows processed when they are asked for: those after a rejection never are.

    `logits` is a view `[n, vocabulary]` of the pass's buffer.
    """

    logits: Logits
    span: LaneSpan

    def distribution(self, row: int, sampler: Sampler) -> Distribution:
        return process(self.logits[row], sampler, self._history(row))

    def logprob(self, row: int, sampler: Sampler, token: int, alternatives: int) -> TokenLogprob:
        own = _require_own(sampler)
        return own.logprob(self.logits[row], self._history(row), token, alternatives)

    def raw_logprob(self, row: int, token: int, alternatives: int) -> TokenLogprob:
        return of_logits(self.logits[row], token, alternatives)

    def _history(self, row: int) -> History:
        base = self.span.history
        return History(base.prompt, base.generated + self.span.proposals[:row])


def process(row: Logits, sampler: Sampler, history: History) -> Distribution:
    """Process one row of logits `[vocabulary]` with a sampler of this package.

    Raises:
        InvalidLogits: the row cannot be sampled from.
        TypeError: the sampler is another engine's.
    """
    return _require_own(sampler).distribution(row, history)


def _require_own(sampler: Sampler) -> RowSampler:
    if not isinstance(sampler, RowSampler):
        raise TypeError(f"rows of logits need a RowSampler, not {type(sampler).__name__}")
    return sampler


def rows_of(lanes: Sequence[LaneSpan], logits: Logits) -> tuple[TargetRows, ...]:
    """Return each lane's rows of a pass, from the logits `[rows, vocabulary]` of all of them.

    Where every lane is greedy and unpenalised, one argmax over the pass decides
    them all, and `logits` may be overwritten at once; otherwise it must stay
    valid until the rows were read.
    """
    if all(_is_plain_argmax(lane.sampler) for lane in lanes):
        return _greedy_rows(lanes, logits)
    return tuple(ProcessedRows(logits[lane.first : lane.first + lane.rows], lane) for lane in lanes)


def _is_plain_argmax(sampler: Sampler) -> bool:
    return isinstance(sampler, RowSampler) and sampler.is_plain_argmax


def _greedy_rows(lanes: Sequence[LaneSpan], logits: Logits) -> tuple[TargetRows, ...]:
    tokens = logits.argmax(axis=1)
    peaks = logits[np.arange(len(tokens)), tokens]
    return tuple(
        GreedyRows(tokens[rows], peaks[rows], logits[rows], lane)
        for lane, rows in ((lane, slice(lane.first, lane.first + lane.rows)) for lane in lanes)
    )
