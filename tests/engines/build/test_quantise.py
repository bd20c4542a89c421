"""8-bit blocks: exact where they can be, within half a step elsewhere."""

import numpy as np
import pytest

from engines.build.quantise import BLOCK, dequantise, quantise


def random_weight(outputs: int, inputs: int) -> np.ndarray:
    return np.random.default_rng(1).normal(0, 0.1, (outputs, inputs)).astype(np.float32)


def test_quantised_weight_is_within_half_a_step() -> None:
    weight = random_weight(8, 2 * BLOCK)
    quantised = quantise(weight)

    error = np.abs(dequantise(quantised) - weight).reshape(8, 2, BLOCK)

    assert (error <= quantised.scales[..., None] * 0.5001).all()
    assert error.max() > 0


def test_quantised_weight_that_lies_on_levels_is_exact() -> None:
    levels = np.random.default_rng(1).integers(-127, 128, (4, BLOCK))
    levels[:, 0] = 127
    weight = levels.astype(np.float32) * np.float32(0.25)

    assert (weight == dequantise(quantise(weight))).all()


def test_quantised_block_of_zeros_is_exact() -> None:
    weight = random_weight(2, 2 * BLOCK)
    weight[1, BLOCK:] = 0

    assert (dequantise(quantise(weight))[1, BLOCK:] == 0).all()


@pytest.mark.parametrize("inputs", [1, BLOCK - 1, BLOCK + 1])
def test_quantised_inputs_that_fill_no_block_are_padded(inputs) -> None:
    weight = random_weight(3, inputs)
    quantised = quantise(weight)

    assert (3, -(-inputs // BLOCK), BLOCK) == quantised.values.shape
    assert (3, inputs) == dequantise(quantised).shape
    assert np.abs(dequantise(quantised) - weight).max() <= quantised.scales.max() * 0.5001


def test_quantised_levels_are_centred() -> None:
    """The kernel subtracts 128 and has no level for -128."""
    values = quantise(random_weight(16, BLOCK)).values

    assert 1 <= values.min() < 128 < values.max() <= 255
