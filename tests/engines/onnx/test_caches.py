"""Caches: capacities, growth and moves."""

import numpy as np
import pytest

from engines.build.synthetic import tiny_geometry
from engines.onnx.caches import KvCaches, capacity_for
from service.errors import EngineError

GEOMETRY = tiny_geometry(265)


@pytest.mark.parametrize(
    ("columns", "capacity"),
    [(0, 64), (1, 64), (64, 64), (65, 128), (1000, 1024), (1025, 1152), (2049, 2304), (8200, 9216)],
)
def test_capacity_rounds_up_in_growing_steps(columns, capacity) -> None:
    assert capacity == capacity_for(columns)


def test_capacity_never_wastes_more_than_an_eighth() -> None:
    for columns in range(512, 9000, 7):
        capacity = capacity_for(columns)
        assert capacity % 64 == 0
        assert columns <= capacity <= columns + max(64, columns // 8)


@pytest.mark.parametrize("capacity", [10**12, 10**30])
def test_caches_beyond_the_address_space_are_refused(capacity) -> None:
    with pytest.raises(EngineError, match="cannot be reserved"):
        KvCaches(GEOMETRY, 3, capacity)


def filled() -> KvCaches:
    caches = KvCaches(GEOMETRY, 3, 1024)
    for index, array in enumerate(caches.arrays):
        array[:] = np.random.default_rng(index).normal(size=array.shape)
    return caches


def test_resize_keeps_each_lane_to_its_length() -> None:
    caches = filled()
    before = [array.copy() for array in caches.arrays]

    caches.resize(128, [64, 10])

    for old, new in zip(before, caches.arrays, strict=True):
        assert (3, GEOMETRY.kv_heads, 128, GEOMETRY.head_width) == new.shape
        assert (old[0] == new[0, :, :64]).all()
        assert (old[1, :, :10] == new[1, :, :10]).all()


def test_resizes_up_and_down_keep_every_lane() -> None:
    """Lanes move over each other's old places."""
    caches = filled()
    lengths = [64, 10, 33]
    before = [array.copy() for array in caches.arrays]

    for capacity in (128, 192, 1024, 256, 64, 128, 64):
        caches.resize(capacity, lengths)

        for old, new in zip(before, caches.arrays, strict=True):
            for row, length in enumerate(lengths):
                assert (old[row, :, :length] == new[row, :, :length]).all()


def test_caches_given_back_read_as_zeros() -> None:
    """Pages beyond a smaller capacity are returned, and come back clean."""
    caches = KvCaches(GEOMETRY, 3, 4096)
    caches.resize(4096, [])
    for array in caches.arrays:
        array[:] = 1.0

    caches.resize(64, [])
    caches.resize(4096, [])

    for array in caches.arrays:
        assert not array[1:].any()


def test_copied_row_equals_its_source() -> None:
    caches = filled()

    caches.copy_row(2, 0, 30)

    for array in caches.arrays:
        assert (array[2, :, :30] == array[0, :, :30]).all()
        assert (array[2, :, 30:] != array[0, :, 30:]).all()


def test_reserved_bytes_are_those_of_the_arrays() -> None:
    caches = KvCaches(GEOMETRY, 3, 1024)
    caches.resize(192, [])

    assert sum(array.nbytes for array in caches.arrays) == caches.reserved_bytes
