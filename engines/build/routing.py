"""The inputs that route rows between their packed and their side-by-side form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engines.build.onnx_graph import GraphWriter
from engines.bundle.geometry import Geometry

Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Routing:
    """Values that every layer shares, computed once a pass.

    A head's rows are addressed as whole vectors: packed row n of head h is
    vector `n * heads + h` of the projection.
    """

    rotated: str
    """[B, KV, (G + 1) S]: for each kv head its query heads, G with copies, then its key."""
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


def query_copies(geometry: Geometry) -> int:
    """Count how often each query head attends: twice where a kv head has only one.

    ONNX Runtime multiplies a single row by another kernel than several rows, which
    adds in another order: a lone query row would not equal itself in a longer pass.
    """
    return 2 if geometry.queries_per_kv_head == 1 else 1


def add_routing(graph: GraphWriter, geometry: Geometry) -> Routing:
    """Declare the routing inputs and derive what the layers need from them.

    Inputs: `spread` [B, S], the packed row that fills each place (any row where
    a lane is shorter than S); `places` [N], the flat place `b * S + s` of each
    packed row; `positions` [B, S]; `mask` [B, 1, S, T], added to the scores;
    `write` [B].
    """
    return _Router(graph, geometry).route()


class _Router:
    def __init__(self, graph: GraphWriter, geometry: Geometry) -> None:
        self._graph = graph
        self._geometry = geometry
        self._copies = query_copies(geometry)

    def route(self) -> Routing:
        graph, group = self._graph, self._geometry.queries_per_kv_head * self._copies
        spread = graph.input("spread", "int64", ("B", "S"))
        places = graph.input("places", "int64", ("N",))
        positions = graph.input("positions", "int64", ("B", "S"))
        mask = graph.input("mask", "float32", ("B", 1, "S", "T"))
        write = graph.input("write", "int64", ("B",))
        heads = self._geometry.query_heads + 2 * self._geometry.kv_heads
        first = self._multiply("routing.first_vectors", spread, heads)
        length = graph.node("Shape", "routing.length", [spread], start=1, end=2)
        query_length = self._multiply("routing.query_length", length, group)
        return Routing(
            rotated=self._rotated(first),
            values=self._values(first),
            merged=self._merged(places, length),
            positions=graph.node("Concat", "routing.positions", [positions] * (group + 1), axis=1),
            sizes=graph.node("Concat", "routing.sizes", [query_length, length], axis=0),
            mask=graph.node("Concat", "routing.mask", [mask] * group, axis=2),
            write=write,
        )

    def _rotated(self, first: str) -> str:
        """`[B, 1, 1, S]` plus `[1, KV, G + 1, 1]`, the last two axes joined."""
        kv, group = self._geometry.kv_heads, self._geometry.queries_per_kv_head
        queries = np.arange(self._geometry.query_heads).reshape(kv, group)
        keys = self._geometry.query_heads + np.arange(kv).reshape(kv, 1)
        heads = np.concatenate([queries.repeat(self._copies, 1), keys], axis=1)[None, :, :, None]
        by_head = self._reshape("routing.vectors_by_head", first, (0, 1, 1, -1))
        vectors = self._add("routing.rotated_by_head", by_head, heads)
        return self._reshape("routing.rotated", vectors, (0, kv, -1))

    def _values(self, first: str) -> str:
        """`[B, 1, S]` plus `[1, KV, 1]`."""
        kv = self._geometry.kv_heads
        heads = self._geometry.query_heads + kv + np.arange(kv)
        by_value = self._reshape("routing.vectors_by_value", first, (0, 1, -1))
        return self._add("routing.values", by_value, heads[None, :, None])

    def _merged(self, places: str, length: str) -> str:
        """`(b * H + h) * S + s`, with b and s from the flat place, h the first copy of a head."""
        heads = self._geometry.query_heads * self._copies
        column = self._reshape("routing.place", places, (-1, 1))
        lane = self._graph.node("Div", "routing.lane", [column, length])
        row = self._graph.node("Mod", "routing.row", [column, length])
        lane_heads = self._multiply("routing.lane_heads", lane, heads)
        firsts = np.arange(0, heads, self._copies)
        head = self._add("routing.head", lane_heads, firsts[None, :])
        start = self._graph.node("Mul", "routing.head_start", [head, length])
        return self._graph.node("Add", "routing.merged", [start, row])

    def _multiply(self, name: str, value: str, factor: int) -> str:
        return self._graph.node("Mul", name, [value, self._constant(np.array([factor]))])

    def _add(self, name: str, value: str, terms: Integers) -> str:
        return self._graph.node("Add", name, [value, self._constant(terms)])

    def _reshape(self, name: str, value: str, shape: tuple[int, ...]) -> str:
        return self._graph.node("Reshape", name, [value, self._constant(np.array(shape))])

    def _constant(self, values: Integers) -> str:
        return self._graph.constant(values.astype(np.int64))
