"""A llama-family decoder as data: sizes, the blocks of its graph, and the names of its weights.

Nothing here knows an engine. An emitter walks the blocks in order and asks a
`WeightSource` for each named array, so that every engine is built from one
description.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engines.bundle.geometry import Geometry

Floats = NDArray[np.float32]


class WeightSource(Protocol):
    """Where named weights come from."""

    def array(self, name: str) -> Floats:
        """Read one weight: `[outputs, inputs]` for a projection, `[width]` for a norm."""
        ...


@dataclass(frozen=True, slots=True)
class Norm:
    """Root-mean-square normalisation with a learned scale."""

    scale: str


@dataclass(frozen=True, slots=True)
class Linear:
    """A projection without bias; several weights are stacked along the outputs."""

    weights: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Attention:
    """Causal attention with rotary positions and grouped key and value heads.

    `projection` stacks query, key and value heads in this order, each head with
    the two halves of its rotary pairs apart (not interleaved).
    """

    norm: Norm
    projection: Linear
    output: Linear


@dataclass(frozen=True, slots=True)
class FeedForward:
    """`down(silu(gate(x)) * up(x))`; `opening` stacks gate and up."""

    norm: Norm
    opening: Linear
    down: Linear


@dataclass(frozen=True, slots=True)
class Layer:
    """One residual layer: `x += attention(x)`, then `x += feed_forward(x)`."""

    attention: Attention
    feed_forward: FeedForward


@dataclass(frozen=True, slots=True)
class Rope:
    """Rotary frequencies: `theta ** (-2i / head_width)`, each divided by its factor if any."""

    theta: float
    factors: str | None


@dataclass(frozen=True, slots=True)
class Description:
    """A whole decoder. The head is tied where it names the embedding's weight."""

    architecture: str
    geometry: Geometry
    rope: Rope
    embedding: str
    layers: tuple[Layer, ...]
    norm: Norm
    head: str

    def weights(self) -> tuple[str, ...]:
        """Name every weight that the blocks use, each once."""
        names = [self.embedding, self.norm.scale, self.head]
        if self.rope.factors is not None:
            names.append(self.rope.factors)
        for layer in self.layers:
            attention, block = layer.attention, layer.feed_forward
            names += [attention.norm.scale, *attention.projection.weights]
            names += [*attention.output.weights, block.norm.scale]
            names += [*block.opening.weights, *block.down.weights]
        return tuple(dict.fromkeys(names))


def llama_description(geometry: Geometry, *, tied: bool, scaled_rope: bool) -> Description:
    """Describe a Llama or SmolLM decoder by its canonical weight names.

    `tied` uses the embedding as head; `scaled_rope` divides the rotary
    frequencies by the factors in `rope.factors` (Llama 3.1 and later).
    """
    return Description(
        architecture="llama",
        geometry=geometry,
        rope=Rope(geometry.rope_theta, "rope.factors" if scaled_rope else None),
        embedding="embedding",
        layers=tuple(_llama_layer(index) for index in range(geometry.layers)),
        norm=Norm("norm"),
        head="embedding" if tied else "head",
    )


def _llama_layer(index: int) -> Layer:
    def name(part: str) -> str:
        return f"layers.{index}.{part}"

    return Layer(
        attention=Attention(
            norm=Norm(name("attention.norm")),
            projection=Linear(
                (name("attention.query"), name("attention.key"), name("attention.value"))
            ),
            output=Linear((name("attention.output"),)),
        ),
        feed_forward=FeedForward(
            norm=Norm(name("feed_forward.norm")),
            opening=Linear((name("feed_forward.gate"), name("feed_forward.up"))),
            down=Linear((name("feed_forward.down"),)),
        ),
    )


def weight_shape(geometry: Geometry, name: str) -> tuple[int, ...]:
    """Give the shape of a canonical weight: `[outputs, inputs]`, or one axis for a vector."""
    width, inner, head = geometry.width, geometry.feed_forward_width, geometry.head_width
    queries, keys = geometry.query_heads * head, geometry.kv_heads * head
    shapes: dict[str, tuple[int, ...]] = {
        "embedding": (geometry.vocabulary, width),
        "norm": (width,),
        "head": (geometry.vocabulary, width),
        "factors": (head // 2,),
        "query": (queries, width),
        "key": (keys, width),
        "value": (keys, width),
        "output": (width, queries),
        "gate": (inner, width),
        "up": (inner, width),
        "down": (width, inner),
    }
    return shapes[name.rsplit(".", 1)[-1]]
