"""How an ONNX graph stores and applies weights: 8-bit blocks or float32."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from engines.build.description import Floats, Linear, WeightSource
from engines.build.onnx_graph import GraphWriter
from engines.build.quantise import BLOCK, ZERO_POINT, quantise


class Projections(Protocol):
    """Applies weights to packed rows `[N, inputs]`."""

    def embed(self, name: str, ids: str, weight: str) -> str:
        """Look rows of an embedding up."""
        ...

    def apply(self, name: str, rows: str, linear: Linear) -> str:
        """Multiply rows by a projection."""
        ...


class FloatProjections:
    """Float32 weights; a tied head shares the embedding's array."""

    def __init__(self, graph: GraphWriter, source: WeightSource) -> None:
        self._graph = graph
        self._source = source
        self._stored: set[str] = set()

    def embed(self, name: str, ids: str, weight: str) -> str:
        return self._graph.node("Gather", name, [self._store(Linear((weight,))), ids])

    def apply(self, name: str, rows: str, linear: Linear) -> str:
        return self._graph.node("Gemm", name, [rows, self._store(linear)], transB=1)

    def _store(self, linear: Linear) -> str:
        name = _stored_name(linear)
        if name not in self._stored:
            self._stored.add(name)
            self._graph.weight(name, stacked(self._source, linear))
        return name


class QuantisedProjections:
    """Blocks of 64 weights in 8 bits, multiplied with integer dot products.

    `accuracy_level=4` quantises the activations of each row by itself, so a row
    does not depend on its neighbours. A tied head and the embedding share one array.
    """

    def __init__(self, graph: GraphWriter, source: WeightSource) -> None:
        self._graph = graph
        self._source = source
        self._shapes: dict[str, tuple[int, int]] = {}

    def embed(self, name: str, ids: str, weight: str) -> str:
        stored = self._store(Linear((weight,)))
        _, width = self._shapes[stored]
        levels = self._graph.node("Gather", f"{name}.levels", [f"{stored}.levels", ids])
        values = self._graph.node("Cast", f"{name}.values", [levels], to=1)
        zero = self._graph.constant(np.array([ZERO_POINT], np.float32))
        centred = self._graph.node("Sub", f"{name}.centred", [values, zero])
        scales = self._graph.node("Gather", f"{name}.scales", [f"{stored}.scales", ids])
        axis = self._graph.constant(np.array([2], np.int64))
        columns = self._graph.node("Unsqueeze", f"{name}.scale_columns", [scales, axis])
        blocks = self._graph.node("Mul", f"{name}.blocks", [centred, columns])
        shape = self._graph.constant(np.array([0, -1], np.int64))
        padded = self._graph.node("Reshape", f"{name}.padded", [blocks, shape])
        if width % BLOCK == 0:
            return padded
        bounds = [self._graph.constant(np.array([each], np.int64)) for each in (0, width, 1)]
        return self._graph.node("Slice", name, [padded, *bounds])

    def apply(self, name: str, rows: str, linear: Linear) -> str:
        stored = self._store(linear)
        outputs, inputs = self._shapes[stored]
        return self._graph.contrib(
            "MatMulNBits",
            [name],
            [rows, f"{stored}.levels", f"{stored}.scales"],
            K=inputs,
            N=outputs,
            bits=8,
            block_size=BLOCK,
            accuracy_level=4,
        )[0]

    def _store(self, linear: Linear) -> str:
        name = _stored_name(linear)
        if name not in self._shapes:
            weight = stacked(self._source, linear)
            self._shapes[name] = (weight.shape[0], weight.shape[1])
            quantised = quantise(weight)
            self._graph.weight(f"{name}.levels", quantised.values)
            self._graph.weight(f"{name}.scales", quantised.scales)
        return name


def stacked(source: WeightSource, linear: Linear) -> Floats:
    """Read a projection's weights, one below the other: `[outputs, inputs]`."""
    return np.concatenate([source.array(weight) for weight in linear.weights])


def _stored_name(linear: Linear) -> str:
    return "+".join(linear.weights) + ".weight"
