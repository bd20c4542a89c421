"""Blockwise symmetric 8-bit weights, in the layout of ONNX Runtime's MatMulNBits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.build.description import Floats

BLOCK = 64
ZERO_POINT = 128


@dataclass(frozen=True, slots=True)
class QuantisedWeight:
    """`weight[o, i] = scales[o, i // 64] * (values[o, i // 64, i % 64] - 128)`.

    `values` is `[outputs, blocks, 64]`, `scales` `[outputs, blocks]`. The inputs
    are padded with zeros to whole blocks.
    """

    inputs: int
    values: NDArray[np.uint8]
    scales: Floats


def quantise(weight: Floats) -> QuantisedWeight:
    """Round a weight `[outputs, inputs]` to 255 levels a block, centred on zero."""
    outputs, inputs = weight.shape
    blocks = -(-inputs // BLOCK)
    padded = np.zeros((outputs, blocks * BLOCK), np.float32)
    padded[:, :inputs] = weight
    grouped = padded.reshape(outputs, blocks, BLOCK)
    scales = np.abs(grouped).max(axis=-1) / np.float32(ZERO_POINT - 1)
    # A block of zeros keeps scale zero; any divisor then gives level zero.
    divisors = np.where(scales > 0, scales, np.float32(1))[..., None]
    levels = np.rint(grouped / divisors) + ZERO_POINT
    return QuantisedWeight(inputs, levels.astype(np.uint8), scales)


def dequantise(weight: QuantisedWeight) -> Floats:
    """Give back the float32 weight that the levels stand for; the reference for tests."""
    levels = weight.values.astype(np.float32) - ZERO_POINT
    whole: Floats = (levels * weight.scales[..., None]).reshape(weight.values.shape[0], -1)
    return whole[:, : weight.inputs]
