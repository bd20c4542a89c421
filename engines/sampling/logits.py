"""Rows of logits, and how single ids of one are changed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from service.speculation.contract import History, Tokens

Row = NDArray[np.float32]
Ids = NDArray[np.intp]
Values = NDArray[np.float64]

LARGEST = float(np.finfo(np.float32).max)


def put(row: Row, ids: Ids, values: Values) -> None:
    """Set the logits of some ids, saturating at what single precision holds.

    So no setting makes a token impossible or certain by overflow; what is impossible already
    stays so.
    """
    before = row[ids]
    row[ids] = np.where(np.isfinite(before), np.clip(values, -LARGEST, LARGEST), before)


def known(tokens: Tokens, vocabulary: int) -> Ids:
    """Return the ids that the row has: a draft's vocabulary may be the shorter one."""
    ids = np.array(tokens, np.intp)
    return ids[ids < vocabulary]


def window(history: History, last_n: int) -> tuple[Tokens, Tokens]:
    """Return the prompt's and the output's part of the last `last_n` tokens; negative is all."""
    if last_n < 0:
        return history.prompt, history.generated
    generated = history.generated[max(0, len(history.generated) - last_n) :]
    room = last_n - len(generated)
    return history.prompt[max(0, len(history.prompt) - room) :], generated
