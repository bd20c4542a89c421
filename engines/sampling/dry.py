"""DRY: penalise the token that would make a repeated run longer.

Source: "Don't Repeat Yourself" sampling, text-generation-webui, pull request 5677.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engines.sampling.logits import Ids, Row, put, window
from service.speculation.contract import History

MAX_RUN = 50
"""No run is followed back further, so that a row costs a bounded number of comparisons."""


@dataclass(frozen=True, slots=True)
class Dry:
    """The penalty on runs within the last `last_n` tokens, prompt included; negative is all.

    A run is the longest end of the history that occurred before. A token in `breakers` ends it
    and is no part of it.
    """

    multiplier: float
    base: float
    allowed_length: int
    last_n: int
    breakers: frozenset[int] = frozenset()

    def apply(self, row: Row, history: History) -> Row:
        """Return the penalised logits `[vocabulary]`; the given row is not modified.

        Each token that followed a run of m ≥ `allowed_length` tokens loses
        `multiplier` · `base` ^ (m - `allowed_length`), of its runs the longest counting.
        """
        prompt, generated = window(history, self.last_n)
        ids, lengths = _longest_runs(np.array(prompt + generated, np.intp), self.breakers)
        punished = (lengths >= self.allowed_length) & (ids < row.size)
        if not punished.any():
            return row
        ids, excess = ids[punished], lengths[punished] - self.allowed_length
        penalised = row.copy()
        with np.errstate(over="ignore"):
            loss = self.multiplier * np.power(self.base, excess.astype(np.float64))
            put(penalised, ids, row[ids] - loss)
        return penalised


def _longest_runs(tokens: Ids, breakers: frozenset[int]) -> tuple[Ids, Ids]:
    """Return the ids that followed an earlier run, and the longest run of each."""
    last = tokens.size - 1
    alive = places = np.flatnonzero(tokens[:-1] == tokens[-1:])
    lengths = np.zeros(tokens.size, np.intp)
    for back in range(min(last, MAX_RUN)):
        token = int(tokens[last - back])
        alive = alive[alive >= back]
        alive = alive[tokens[alive - back] == token]
        if token in breakers or not alive.size:
            break
        lengths[alive] += 1
    ids, group = np.unique(tokens[places + 1], return_inverse=True)
    longest = np.zeros(ids.size, np.intp)
    np.maximum.at(longest, group, lengths[places])
    return ids, longest
