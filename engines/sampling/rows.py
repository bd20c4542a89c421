"""The rows of a pass as the core reads them: lane by lane, each at its own history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.sampling.kept import Kept
from engines.sampling.logprobs import of_logits
from engines.sampling.one_hot import OneHot
from engines.sampling.row_sampler import ProcessedRow, RowSampler
from service.errors import InvalidLogits
from service.speculation.contract import (
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

    def of(self, logits: Logits) -> Logits:
        """Return the lane's own rows of a pass, without padded ids."""
        own = self.sampler
        vocabulary = own.vocabulary if isinstance(own, RowSampler) else None
        return logits[self.first : self.first + self.rows, :vocabulary]


class GreedyRows:
    """Rows `[n, vocabulary]` decided by their highest raw logits, all of them at once.

    Only log-probabilities look at the logits again.
    """

    def __init__(self, logits: Logits) -> None:
        self._logits = logits
        self._tokens = logits.argmax(axis=1)
        self._peaks = logits[np.arange(len(logits)), self._tokens]

    def distribution(self, row: int, sampler: Sampler) -> OneHot:
        del sampler
        peak = float(self._peaks[row])
        if not np.isfinite(peak):
            raise InvalidLogits(peak)
        return OneHot(int(self._tokens[row]))

    def logprob(self, row: int, sampler: Sampler, token: int, alternatives: int) -> TokenLogprob:
        del sampler
        return of_logits(self._logits[row], token, alternatives)

    def raw_logprob(self, row: int, token: int, alternatives: int) -> TokenLogprob:
        return of_logits(self._logits[row], token, alternatives)


class ProcessedRows:
    """Rows processed when they are asked for: those after a rejection never are.

    `logits` is a view `[n, vocabulary]` of the pass's buffer.
    """

    def __init__(self, logits: Logits, span: LaneSpan) -> None:
        self._logits = logits
        self._span = span
        self._last: tuple[int, Sampler, ProcessedRow] | None = None

    def distribution(self, row: int, sampler: Sampler) -> OneHot | Kept:
        return self._process(row, sampler).distribution

    def logprob(self, row: int, sampler: Sampler, token: int, alternatives: int) -> TokenLogprob:
        return self._process(row, sampler).logprob(token, alternatives)

    def raw_logprob(self, row: int, token: int, alternatives: int) -> TokenLogprob:
        return of_logits(self._logits[row], token, alternatives)

    def _process(self, row: int, sampler: Sampler) -> ProcessedRow:
        """Process a row; its log-probability is asked for right after its distribution."""
        if self._last is not None and self._last[0] == row and self._last[1] is sampler:
            return self._last[2]
        processed = _require_own(sampler).process(self._logits[row], self._history(row))
        self._last = row, sampler, processed
        return processed

    def _history(self, row: int) -> History:
        base = self._span.history
        before = max(0, row - self._span.prompt_rows)
        return History(base.prompt, base.generated + self._span.proposals[:before])


def process(row: Logits, sampler: Sampler, history: History) -> OneHot | Kept:
    """Process one row of logits `[vocabulary]` with a sampler of this package.

    Raises:
        OutriderError: the row cannot be sampled from, or the request forbids every token.
        TypeError: the sampler is another engine's.
    """
    return _require_own(sampler).distribution(row, history)


def prefetch(sampler: Sampler, history: History, proposals: Tokens) -> None:
    """Let what the rows after a history and some proposals forbid be computed meanwhile."""
    if isinstance(sampler, RowSampler):
        sampler.prefetch(history.generated, proposals)


def _require_own(sampler: Sampler) -> RowSampler:
    if not isinstance(sampler, RowSampler):
        raise TypeError(f"rows of logits need a RowSampler, not {type(sampler).__name__}")
    return sampler


def rows_of(lanes: Sequence[LaneSpan], logits: Logits) -> tuple[TargetRows, ...]:
    """Return each lane's rows of a pass, from the logits `[rows, vocabulary]` of all of them.

    `logits` must stay valid until the rows were read; where every lane is greedy and nothing is
    adjusted, only their log-probabilities need it.
    """
    return tuple(
        GreedyRows(lane.of(logits))
        if _is_plain_argmax(lane.sampler)
        else ProcessedRows(lane.of(logits), lane)
        for lane in lanes
    )


def _is_plain_argmax(sampler: Sampler) -> bool:
    return isinstance(sampler, RowSampler) and sampler.is_plain_argmax
