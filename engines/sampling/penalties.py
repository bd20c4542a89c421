"""Penalties on tokens that already occurred, at one row's exact history."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.speculation.contract import History, Tokens

Row = NDArray[np.float32]
Ids = NDArray[np.intp]

_LARGEST = float(np.finfo(np.float32).max)


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
        prompt, generated = _window(history, self.last_n)
        penalised = row.copy()
        # Absurd penalties saturate: a boosted id stays finite, a punished one has no mass.
        with np.errstate(over="ignore"):
            if self.repetition != 1.0:
                self._repeat(penalised, _known(prompt + generated, row.size))
            if self.frequency != 0.0 or self.presence != 0.0:
                self._occur(penalised, _known(generated, row.size))
        return penalised

    def _repeat(self, row: Row, ids: Ids) -> None:
        logits = row[ids].astype(np.float64)
        scaled = np.where(logits > 0.0, logits / self.repetition, logits * self.repetition)
        # An id that occurs twice is assigned the same value twice.
        row[ids] = np.minimum(scaled, _LARGEST)

    def _occur(self, row: Row, ids: Ids) -> None:
        distinct, counts = np.unique(ids, return_counts=True)
        lowered = row[distinct] - (self.frequency * counts + self.presence)
        row[distinct] = np.minimum(lowered, _LARGEST)


NO_PENALTIES = Penalties()


def _window(history: History, last_n: int) -> tuple[Tokens, Tokens]:
    """Return the prompt's and the output's part of the last `last_n` tokens."""
    if last_n < 0:
        return history.prompt, history.generated
    generated = history.generated[-last_n:]
    room = last_n - len(generated)
    return history.prompt[max(0, len(history.prompt) - room) :], generated


def _known(tokens: Tokens, vocabulary: int) -> Ids:
    """Return the ids that the row has: a draft's vocabulary may be the shorter one."""
    ids = np.array(tokens, np.intp)
    return ids[ids < vocabulary]
