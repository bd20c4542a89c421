"""Where each lane's logits lie among the rows of a pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class LaneLogits:
    """The wanted rows of a pass: lane i has `counts[i]` of `rows` from `first[i]` on.

    `rows` is `[wanted, vocabulary]`, a view of the pass's buffer.
    """

    rows: Floats
    first: tuple[int, ...]
    counts: tuple[int, ...]

    @classmethod
    def arrange(cls, rows: Floats, counts: Sequence[int], order: Sequence[int]) -> Self:
        """Lay lanes out one after the other, in the order in which they are computed."""
        first = [0] * len(counts)
        total = 0
        for lane in order:
            first[lane] = total
            total += counts[lane]
        return cls(rows, tuple(first), tuple(counts))

    def __len__(self) -> int:
        """Count the lanes."""
        return len(self.counts)

    def __getitem__(self, lane: int) -> Floats:
        """Give one lane's rows `[wanted, vocabulary]`, as a view."""
        return self.rows[self.first[lane] : self.first[lane] + self.counts[lane]]

    def __iter__(self) -> Iterator[Floats]:
        """Give the lanes' rows in the order in which the lanes were given."""
        return (self[lane] for lane in range(len(self)))
