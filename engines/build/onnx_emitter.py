"""Emit a described decoder as ONNX for ONNX Runtime on CPU.

The rows of all lanes of a pass lie packed, `[N, ...]`, through every projection;
only attention sees lanes side by side, `[B, S, ...]`. Gathers that stand where a
transpose would stand anyway lead from one form to the other, so ragged lanes pay
for no padded row outside attention.

    N packed rows   B lanes   S rows of the longest lane   T cache capacity   M rows to project
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from engines.build.description import (
    Attention,
    Description,
    FeedForward,
    Floats,
    Linear,
    Norm,
    Rope,
    WeightSource,
)
from engines.build.onnx_graph import GraphWriter
from engines.build.projections import FloatProjections, Projections, QuantisedProjections
from engines.build.routing import Routing, add_routing, query_copies
from engines.bundle.geometry import Geometry

_LANE_ROWS = 1024
"""Rows that a lane may have in one pass."""


class Weights(Enum):
    """How projections are stored and multiplied."""

    W8 = "w8"
    F32 = "f32"


class Lowering(Enum):
    """How attention is expressed: grouped MatMul and Softmax, or the Attention operator."""

    TSMAN = "tsman"
    TS = "ts"


@dataclass(frozen=True, slots=True)
class EmitOptions:
    """The form of an emitted graph; `hidden_after_layers` adds residual streams as outputs."""

    weights: Weights = Weights.W8
    lowering: Lowering = Lowering.TSMAN
    hidden_after_layers: tuple[int, ...] = ()


def emit_decoder(
    graph: GraphWriter,
    description: Description,
    source: WeightSource,
    options: EmitOptions,
    layer_done: Callable[[], None] = lambda: None,
) -> None:
    """Write every node and weight of `description` into `graph`.

    Inputs beside those of `add_routing`: `ids` [N], `rows` [M] (the packed rows
    that go through the head), `past_key_i` and `past_value_i` [B, KV, T, head].
    Outputs: `logits` [M, V], `present_*` like `past_*`, `hidden_i` [N, width].
    """
    _Emitter(graph, description, source, options).emit(layer_done)


@dataclass(frozen=True, slots=True)
class Stream:
    """The residual stream: a sum whose last term is added by the next normalisation."""

    residual: str
    pending: str | None = None


@dataclass(frozen=True, slots=True)
class Rotary:
    """Tables of cosines and sines by position."""

    cosines: str
    sines: str


class _Emitter:
    def __init__(
        self,
        graph: GraphWriter,
        description: Description,
        source: WeightSource,
        options: EmitOptions,
    ) -> None:
        self._graph = graph
        self._description = description
        self._geometry = description.geometry
        self._source = source
        self._options = options
        self._projections: Projections = (
            QuantisedProjections(graph, source)
            if options.weights is Weights.W8
            else FloatProjections(graph, source)
        )

    def emit(self, layer_done: Callable[[], None]) -> None:
        ids = self._graph.input("ids", "int64", ("N",))
        wanted = self._graph.input("rows", "int64", ("M",))
        routing = add_routing(self._graph, self._geometry)
        rotary = self._rotary_tables(self._description.rope)
        stream = Stream(self._projections.embed("embedded", ids, self._description.embedding))
        for index, layer in enumerate(self._description.layers):
            normed, stream = self._normalise(layer.attention.norm, stream)
            attended = self._attend(index, layer.attention, normed, (routing, rotary))
            stream = Stream(stream.residual, attended)
            normed, stream = self._normalise(layer.feed_forward.norm, stream)
            opened = self._feed_forward(index, layer.feed_forward, normed)
            stream = Stream(stream.residual, opened)
            if index in self._options.hidden_after_layers:
                stream = self._expose(f"hidden_{index}", stream)
            layer_done()
        self._head(stream, wanted)
        layer_done()

    def _normalise(self, norm: Norm, stream: Stream) -> tuple[str, Stream]:
        """Normalise the sum of the stream; gives the normed rows and the summed stream."""
        scale = self._graph.weight(norm.scale, self._source.array(norm.scale))
        epsilon = self._geometry.norm_epsilon
        name = f"{norm.scale}.rows"
        if stream.pending is None:
            normed = self._graph.node(
                "RMSNormalization", name, [stream.residual, scale], axis=-1, epsilon=epsilon
            )
            return normed, stream
        normed, _, _, total = self._graph.contrib(
            "SkipSimplifiedLayerNormalization",
            [name, "", "", f"{norm.scale}.residual"],
            [stream.residual, stream.pending, scale],
            epsilon=epsilon,
        )
        return normed, Stream(total)

    def _attend(
        self, index: int, block: Attention, rows: str, shared: tuple[Routing, Rotary]
    ) -> str:
        routing, rotary = shared
        graph, geometry, name = self._graph, self._geometry, f"layers.{index}.attention"
        projected = self._projections.apply(f"{name}.projected", rows, block.projection)
        vectors = self._reshape(f"{name}.vectors", projected, (-1, geometry.head_width))
        unturned = graph.node("Gather", f"{name}.unturned", [vectors, routing.rotated])
        turned = graph.node(
            "RotaryEmbedding",
            f"{name}.turned",
            [unturned, rotary.cosines, rotary.sines, routing.positions],
        )
        queries, keys = graph.split(
            (f"{name}.queries", f"{name}.keys"), turned, routing.sizes, axis=2
        )
        values = graph.node("Gather", f"{name}.values", [vectors, routing.values])
        cached = (
            self._cache(f"key_{index}", keys, routing),
            self._cache(f"value_{index}", values, routing),
        )
        mixed = self._mix(name, queries, cached, routing)
        flat = self._reshape(f"{name}.flat", mixed, (-1, geometry.head_width))
        heads = graph.node("Gather", f"{name}.heads", [flat, routing.merged])
        merged = self._reshape(
            f"{name}.merged", heads, (-1, geometry.query_heads * geometry.head_width)
        )
        return self._projections.apply(f"{name}.output", merged, block.output)

    def _cache(self, name: str, update: str, routing: Routing) -> str:
        """Write new rows into a cache; with one pointer bound to both sides it stays in place."""
        shape = ("B", self._geometry.kv_heads, "T", self._geometry.head_width)
        past = self._graph.input(f"past_{name}", "float32", shape)
        self._graph.output(f"present_{name}", "float32", shape)
        return self._graph.node(
            "TensorScatter", f"present_{name}", [past, update, routing.write], axis=-2
        )

    def _mix(self, name: str, queries: str, cached: tuple[str, str], routing: Routing) -> str:
        """Attend over the whole capacity; the mask hides what a lane has not written."""
        keys, values = cached
        scale = float(self._geometry.head_width**-0.5)
        graph = self._graph
        if self._options.lowering is Lowering.TS:
            heads = self._geometry.query_heads * query_copies(self._geometry)
            shape = (0, heads, -1, self._geometry.head_width)
            apart = self._reshape(f"{name}.query_heads", queries, shape)
            return graph.node(
                "Attention", f"{name}.mixed", [apart, keys, values, "mask"], scale=scale
            )
        (scores,) = graph.contrib(
            "FusedMatMul", [f"{name}.scores"], [queries, keys], transB=1, alpha=scale
        )
        masked = graph.node("Add", f"{name}.masked", [scores, routing.mask])
        shares = graph.node("Softmax", f"{name}.shares", [masked], axis=-1)
        return graph.node("MatMul", f"{name}.mixed", [shares, values])

    def _feed_forward(self, index: int, block: FeedForward, rows: str) -> str:
        graph, name = self._graph, f"layers.{index}.feed_forward"
        both = self._projections.apply(f"{name}.both", rows, block.opening)
        halves = graph.constant(np.array([self._geometry.feed_forward_width] * 2, np.int64))
        gate, up = graph.split((f"{name}.gate", f"{name}.up"), both, halves, axis=1)
        (opened,) = graph.contrib("QuickGelu", [f"{name}.opened"], [gate], alpha=1.0)
        product = graph.node("Mul", f"{name}.product", [opened, up])
        return self._projections.apply(f"{name}.down", product, block.down)

    def _head(self, stream: Stream, wanted: str) -> None:
        total = self._total("residual", stream)
        picked = self._graph.node("Gather", "residual.wanted", [total, wanted])
        normed, _ = self._normalise(self._description.norm, Stream(picked))
        self._graph.output("logits", "float32", ("M", self._geometry.vocabulary))
        self._projections.apply("logits", normed, Linear((self._description.head,)))

    def _expose(self, name: str, stream: Stream) -> Stream:
        self._graph.output(name, "float32", ("N", self._geometry.width))
        return Stream(self._total(name, stream))

    def _total(self, name: str, stream: Stream) -> str:
        if stream.pending is None:
            return stream.residual
        return self._graph.node("Add", name, [stream.residual, stream.pending])

    def _rotary_tables(self, rope: Rope) -> Rotary:
        factors = None if rope.factors is None else self._source.array(rope.factors)
        # The operator refuses more places in a lane than its tables have rows.
        places = self._geometry.queries_per_kv_head * query_copies(self._geometry) + 1
        rows = max(self._geometry.context_length, places * _LANE_ROWS)
        cosines, sines = rotary_tables(self._geometry, factors, rows)
        return Rotary(
            self._graph.weight("rotary.cosines", cosines), self._graph.weight("rotary.sines", sines)
        )

    def _reshape(self, name: str, value: str, shape: tuple[int, ...]) -> str:
        return self._graph.node(
            "Reshape", name, [value, self._graph.constant(np.array(shape, np.int64))]
        )


def rotary_tables(
    geometry: Geometry, factors: Floats | None, positions: int
) -> tuple[Floats, Floats]:
    """Compute cosines and sines by position, `[positions, head_width / 2]`, in float64."""
    exponents = np.arange(0, geometry.head_width, 2, dtype=np.float64) / geometry.head_width
    frequencies = geometry.rope_theta**-exponents
    if factors is not None:
        frequencies /= factors
    angles = np.arange(positions, dtype=np.float64)[:, None] * frequencies
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
