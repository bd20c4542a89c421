"""Key and value caches: one array a layer and kind, a row a lane, one capacity for all.

Attention reads the whole capacity, so it follows the longest lane in steps
instead of standing at the maximum. Memory starts as zeros: a column that no
lane wrote has weight zero, and zero times an unwritten NaN would be a NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engines.bundle.geometry import Geometry

Floats = NDArray[np.float32]

MIN_CAPACITY = 64
_STEPS_PER_DOUBLING = 8


def capacity_for(columns: int) -> int:
    """Round up to a capacity: multiples of 64, coarser as an eighth of the size grows past it.

    Steps that grow with the size keep the copying at a constant share of the work.
    """
    step = MIN_CAPACITY
    while columns > step * 2 * _STEPS_PER_DOUBLING:
        step *= 2
    return max(MIN_CAPACITY, -(-columns // step) * step)


class KvCaches:
    """The caches of `rows` lanes; `arrays[2 * i]` are layer i's keys, `[2 * i + 1]` its values.

    Each array is `[rows, kv_heads, capacity, head_width]` in float32. Arrays
    are replaced when the capacity changes, so pointers hold only until then.
    """

    def __init__(self, geometry: Geometry, rows: int) -> None:
        self._geometry = geometry
        self._rows = rows
        self.capacity = MIN_CAPACITY
        self.arrays = [self._zeros(MIN_CAPACITY) for _ in range(2 * geometry.layers)]

    @property
    def reserved_bytes(self) -> int:
        """Bytes of address space at the present capacity; pages become real when written."""
        return self._rows * self.capacity * self._geometry.cache_bytes_per_token

    def resize(self, capacity: int, lengths: Sequence[int]) -> None:
        """Change the capacity, keeping the first `lengths[row]` columns of every row."""
        self.capacity = capacity
        for index, old in enumerate(self.arrays):
            new = self._zeros(capacity)
            for row, length in enumerate(lengths):
                new[row, :, :length] = old[row, :, :length]
            # Replaced one at a time: the peak is one array above the sum.
            self.arrays[index] = new

    def copy_row(self, source: int, destination: int, length: int) -> None:
        """Copy the first `length` columns of a row over another row."""
        for array in self.arrays:
            array[destination, :, :length] = array[source, :, :length]

    def _zeros(self, capacity: int) -> Floats:
        heads, width = self._geometry.kv_heads, self._geometry.head_width
        return np.zeros((self._rows, heads, capacity, width), np.float32)
