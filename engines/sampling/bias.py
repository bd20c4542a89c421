"""What a request adds to the logits of single tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from engines.sampling.logits import Ids, Row, Values, put
from service.speculation.contract import History


@dataclass(frozen=True, slots=True, eq=False)
class Bias:
    """An amount `[n]` for each of some distinct ids `[n]`."""

    ids: Ids
    amounts: Values

    @classmethod
    def of(cls, amounts: Mapping[int, float]) -> Bias:
        """Take over the amounts by id."""
        return cls(np.array([*amounts], np.intp), np.array([*amounts.values()], np.float64))

    def apply(self, row: Row, history: History) -> Row:
        """Return the logits `[vocabulary]` with the amounts added; the given row is not modified.

        Ids that the row does not have are left out.
        """
        del history
        biased, here = row.copy(), self.ids < row.size
        ids = self.ids[here]
        put(biased, ids, row[ids] + self.amounts[here])
        return biased
