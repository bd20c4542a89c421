"""A llama decoder in plain numpy, float64, without caches: what a graph must compute."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engines.build.description import Description, Linear, Norm, WeightSource


class ReferenceDecoder:
    """Computes logits and residual streams of one whole sequence."""

    def __init__(self, description: Description, source: WeightSource) -> None:
        self._description = description
        self._geometry = description.geometry
        self._source = source

    def logits(self, tokens: Sequence[int]) -> np.ndarray:
        """Return `[tokens, vocabulary]`."""
        residual = self._rms(self._description.norm, self.streams(tokens)[-1])
        return residual @ self._weight(Linear((self._description.head,))).T

    def streams(self, tokens: Sequence[int]) -> list[np.ndarray]:
        """Return the residual stream `[tokens, width]` after each layer."""
        x = self._weight(Linear((self._description.embedding,)))[list(tokens)]
        streams = []
        for layer in self._description.layers:
            x = x + self._attention(layer.attention, self._rms(layer.attention.norm, x))
            block = layer.feed_forward
            opened = self._rms(block.norm, x) @ self._weight(block.opening).T
            gate, up = np.split(opened, 2, axis=-1)
            x = x + (gate / (1 + np.exp(-gate)) * up) @ self._weight(block.down).T
            streams.append(x)
        return streams

    def _attention(self, block, x: np.ndarray) -> np.ndarray:
        g = self._geometry
        projected = (x @ self._weight(block.projection).T).reshape(len(x), -1, g.head_width)
        ends = [g.query_heads, g.query_heads + g.kv_heads]
        queries, keys, values = np.split(projected, ends, axis=1)
        queries, keys = self._rotate(queries), self._rotate(keys)
        keys, values = (np.repeat(each, g.queries_per_kv_head, axis=1) for each in (keys, values))
        scores = np.einsum("qhd,khd->hqk", queries, keys) / np.sqrt(g.head_width)
        scores += np.triu(np.full(scores.shape[1:], -np.inf), k=1)
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        mixed = np.einsum("hqk,khd->qhd", shares, values).reshape(len(x), -1)
        return mixed @ self._weight(block.output).T

    def _rotate(self, heads: np.ndarray) -> np.ndarray:
        width = self._geometry.head_width
        rope = self._description.rope
        frequencies = rope.theta ** (-np.arange(0, width, 2) / width)
        if rope.factors is not None:
            frequencies = frequencies / self._source.array(rope.factors)
        angles = np.arange(len(heads))[:, None, None] * frequencies
        first, second = np.split(heads, 2, axis=-1)
        cosine, sine = np.cos(angles), np.sin(angles)
        return np.concatenate(
            [first * cosine - second * sine, second * cosine + first * sine], axis=-1
        )

    def _rms(self, norm: Norm, x: np.ndarray) -> np.ndarray:
        scale = np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + self._geometry.norm_epsilon)
        return x / scale * self._source.array(norm.scale)

    def _weight(self, linear: Linear) -> np.ndarray:
        stacked = [self._source.array(name) for name in linear.weights]
        return np.concatenate(stacked).astype(np.float64)
