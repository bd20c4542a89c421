"""The inputs that route rows between their packed and their side-by-side form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from engines.build.onnx_graph import GraphWriter
from engines.bundle.geometry import Geometry


@dataclass(frozen=True, slots=True)
class Routing:
    """Values that every layer shares, computed once a pass.

    A head's rows are addressed as whole vectors: packed row n of head h is
    vector `n * heads + h` of the projection.
    """

    rotated: str
    """[B, KV, (G + 1) S]: for each kv head its G query heads, then its key."""
    values: str
    """[B, KV, S]: the value heads."""
    merged: str
    """[N, Q]: where attention leaves the vectors of each packed row."""
    positions: str
    """[B, (G + 1) S]: the positions of `rotated`."""
    sizes: str
    """[2]: lengths G S and S that part queries from keys."""
    mask: str
    """[B, 1, G S, T], additive."""
    write: str
    """[B]: first cache column that a lane writes."""


def add_routing(graph: GraphWriter, geometry: Geometry) -> Routing:
    """Declare the routing inputs and derive what the layers need from them.

    Inputs: `spread` [B, S], the packed row that fills each place (any row where
    a lane is shorter than S); `places` [N], the flat place `b * S + s` of each
    packed row; `positions` [B, S]; `mask` [B, 1, S, T], added to the scores;
    `write` [B].
    """
    spread = graph.input("spread", "int64", ("B", "S"))
    places = graph.input("places", "int64", ("N",))
    positions = graph.input("positions", "int64", ("B", "S"))
    mask = graph.input("mask", "float32", ("B", 1, "S", "T"))
    write = graph.input("write", "int64", ("B",))
    maths = _Integers(graph)
    group = geometry.queries_per_kv_head
    heads = geometry.query_heads + 2 * geometry.kv_heads
    rows = maths.multiply("routing.rows", spread, heads)
    length = graph.node("Shape", "routing.length", [spread], start=1, end=2)
    return Routing(
        rotated=_rotated(graph, maths, rows, geometry),
        values=_values(graph, maths, rows, geometry),
        merged=_merged(graph, maths, (places, length), geometry),
        positions=graph.node("Concat", "routing.positions", [positions] * (group + 1), axis=1),
        sizes=graph.node(
            "Concat",
            "routing.sizes",
            [maths.multiply("routing.query_length", length, group), length],
            axis=0,
        ),
        mask=graph.node("Concat", "routing.mask", [mask] * group, axis=2),
        write=write,
    )


def _rotated(graph: GraphWriter, maths: _Integers, rows: str, geometry: Geometry) -> str:
    kv, group = geometry.kv_heads, geometry.queries_per_kv_head
    queries = np.arange(geometry.query_heads).reshape(kv, group)
    keys = geometry.query_heads + np.arange(kv).reshape(kv, 1)
    heads = np.concatenate([queries, keys], axis=1)[None, :, :, None]
    spread = maths.reshape("routing.rows_by_head", rows, (0, 1, 1, -1))
    vectors = maths.add("routing.rotated_by_head", spread, heads)
    return maths.reshape("routing.rotated", vectors, (0, kv, -1))


def _values(graph: GraphWriter, maths: _Integers, rows: str, geometry: Geometry) -> str:
    first = geometry.query_heads + geometry.kv_heads
    heads = (first + np.arange(geometry.kv_heads))[None, :, None]
    spread = graph.node("Unsqueeze", "routing.rows_by_value", [rows, maths.constant(np.array([1]))])
    return maths.add("routing.values", spread, heads)


def _merged(
    graph: GraphWriter, maths: _Integers, inputs: tuple[str, str], geometry: Geometry
) -> str:
    """`(b * Q + h) * S + s`, with b and s from the flat place."""
    places, length = inputs
    column = maths.reshape("routing.place", places, (-1, 1))
    lane = graph.node("Div", "routing.lane", [column, length])
    row = graph.node("Mod", "routing.row", [column, length])
    first = maths.multiply("routing.lane_heads", lane, geometry.query_heads)
    head = maths.add("routing.head", first, np.arange(geometry.query_heads)[None, :])
    start = graph.node("Mul", "routing.head_start", [head, length])
    return graph.node("Add", "routing.merged", [start, row])


class _Integers:
    """Integer arithmetic with constants, to keep the formulas above readable."""

    def __init__(self, graph: GraphWriter) -> None:
        self._graph = graph

    def constant(self, values: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> str:
        return self._graph.constant(values.astype(np.int64))

    def multiply(self, name: str, value: str, factor: int) -> str:
        return self._graph.node("Mul", name, [value, self.constant(np.array([factor]))])

    def add(self, name: str, value: str, terms: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> str:
        return self._graph.node("Add", name, [value, self.constant(terms)])

    def reshape(self, name: str, value: str, shape: tuple[int, ...]) -> str:
        return self._graph.node("Reshape", name, [value, self.constant(np.array(shape))])
