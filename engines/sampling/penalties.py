"""Penalties on tokens that already occurred, at one row's exact history."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engines.sampling.logits import Ids, Row, known, put, window
from service.speculation.contract import History


@dataclass(frozen=True, slots=True)
class Penalties:
    """The three penalties, within the last `last_n` tokens of the history.

    `last_n`: negative covers the whole history, zero none of it. `repetition`
    covers prompt and output, `frequency` and `presence` the output only.
    """

    repetition: float = 1.0
    frequency: float = 0.0
    presence: float = 0.0
    last_n: int = 64

    @property
    def is_neutral(self) -> bool:
        """Whether these settings change no row."""
        changes = self.repetition != 1.0 or self.frequency != 0.0 or self.presence != 0.0
        return self.last_n == 0 or not changes

    def apply(self, row: Row, history: History) -> Row:
        """Return the penalised logits `[vocabulary]`; the given row is not modified.

        Repetition first, each distinct id once: l > 0 → l / r, else l · r.
        Then `frequency` for each occurrence, and `presence` once, are subtracted.
        """
        if self.is_neutral:
            return row
        prompt, generated = window(history, self.last_n)
        penalised = row.copy()
        with np.errstate(over="ignore", invalid="ignore"):
            if self.repetition != 1.0:
                self._repeat(penalised, known(prompt + generated, row.size))
            if self.frequency != 0.0 or self.presence != 0.0:
                self._occur(penalised, known(generated, row.size))
        return penalised

    def _repeat(self, row: Row, ids: Ids) -> None:
        logits = row[ids].astype(np.float64)
        # An id that occurs twice is assigned the same value twice.
        put(row, ids, np.where(logits > 0.0, logits / self.repetition, logits * self.repetition))

    def _occur(self, row: Row, ids: Ids) -> None:
        distinct, counts = np.unique(ids, return_counts=True)
        put(row, distinct, row[distinct] - (self.frequency * counts + self.presence))
