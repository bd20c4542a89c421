"""Key and value caches: one array a layer and kind, a row a lane, one capacity for all.

Attention reads the whole capacity, so it follows the longest lane in steps
instead of standing at the maximum. Address space for the maximum is mapped
once and its pages become real when they are written; a change of capacity
moves lanes within it.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engines.bundle.geometry import Geometry
from service.errors import EngineError

Floats = NDArray[np.float32]

MIN_CAPACITY = 64
_STEPS_PER_DOUBLING = 8
_FLOAT_BYTES = 4


def capacity_for(columns: int) -> int:
    """Round up to a capacity: multiples of 64, coarser as an eighth of the size grows past it.

    Steps that grow with the size keep the moving at a constant share of the work.
    """
    step = MIN_CAPACITY
    while columns > step * 2 * _STEPS_PER_DOUBLING:
        step *= 2
    return max(MIN_CAPACITY, -(-columns // step) * step)


def _reserve(size: int) -> mmap.mmap:
    try:
        return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError) as refused:
        raise EngineError(f"{size} bytes of cache cannot be reserved: {refused}") from refused


class KvCaches:
    """The caches of `rows` lanes; `arrays[2 * i]` are layer i's keys, `[2 * i + 1]` its values.

    Each array is `[rows, kv_heads, capacity, head_width]` in float32, and is
    replaced when the capacity changes: pointers hold only until then. Columns
    that no lane wrote are zero or stale, never NaN: weight zero times NaN would
    be NaN.

    Raises EngineError where the address space for the maximum cannot be had.
    """

    def __init__(self, geometry: Geometry, rows: int, max_capacity: int) -> None:
        self._geometry = geometry
        self._rows = rows
        self._blocks = rows * geometry.kv_heads
        floats = self._blocks * max_capacity * geometry.head_width
        self._maps = [_reserve(floats * _FLOAT_BYTES) for _ in range(2 * geometry.layers)]
        self._flat = [np.frombuffer(each, np.float32) for each in self._maps]
        self.capacity = MIN_CAPACITY
        self.arrays = self._views()

    @property
    def reserved_bytes(self) -> int:
        """Bytes that the present capacity can make real."""
        return self._rows * self.capacity * self._geometry.cache_bytes_per_token

    def resize(self, capacity: int, lengths: Sequence[int]) -> None:
        """Change the capacity, keeping the first `lengths[row]` columns of every row."""
        old, self.capacity = self.capacity, capacity
        moves = self._moves(old, lengths)
        for flat in self._flat:
            base = flat.ctypes.data
            for destination, source, size in moves:
                ctypes.memmove(base + destination, base + source, size)
        self.arrays = self._views()
        if capacity < old:
            self._give_back()

    def copy_row(self, source: int, destination: int, length: int) -> None:
        """Copy the first `length` columns of a row over another row."""
        for array in self.arrays:
            array[destination, :, :length] = array[source, :, :length]

    def _moves(self, old: int, lengths: Sequence[int]) -> list[tuple[int, int, int]]:
        """List destination, source and size in bytes, so ordered that nothing unread is lost."""
        column = self._geometry.head_width * _FLOAT_BYTES
        heads = self._geometry.kv_heads
        blocks = range(len(lengths) * heads)
        return [
            (block * self.capacity * column, block * old * column, lengths[block // heads] * column)
            for block in (reversed(blocks) if self.capacity > old else blocks)
        ]

    def _views(self) -> list[Floats]:
        heads, width = self._geometry.kv_heads, self._geometry.head_width
        floats = self._blocks * self.capacity * width
        shape = (self._rows, heads, self.capacity, width)
        return [flat[:floats].reshape(shape) for flat in self._flat]

    def _give_back(self) -> None:
        """Return the pages beyond the present capacity; they read as zeros afterwards."""
        used = self._blocks * self.capacity * self._geometry.head_width * _FLOAT_BYTES
        first = -(-used // mmap.PAGESIZE) * mmap.PAGESIZE
        for each in self._maps:
            if first < len(each):
                each.madvise(mmap.MADV_DONTNEED, first, len(each) - first)
