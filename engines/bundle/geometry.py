"""The sizes of a decoder, as a bundle states them."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Geometry:
    """Sizes of a llama-family decoder; widths are counted in floats, lengths in tokens."""

    layers: int
    width: int
    query_heads: int
    kv_heads: int
    head_width: int
    feed_forward_width: int
    vocabulary: int
    context_length: int
    rope_theta: float
    norm_epsilon: float

    @property
    def queries_per_kv_head(self) -> int:
        return self.query_heads // self.kv_heads

    @property
    def cache_bytes_per_token(self) -> int:
        """Bytes of float32 keys and values that one token holds over all layers."""
        return self.layers * 2 * self.kv_heads * self.head_width * 4

    def problem(self) -> str | None:
        """Say what makes these sizes impossible, or nothing."""
        sizes = (
            self.layers,
            self.width,
            self.query_heads,
            self.kv_heads,
            self.head_width,
            self.feed_forward_width,
            self.vocabulary,
            self.context_length,
        )
        if min(sizes) <= 0:
            return "every size must be positive"
        if self.query_heads % self.kv_heads:
            return f"{self.query_heads} query heads do not divide among {self.kv_heads} kv heads"
        if self.head_width % 2:
            return f"head width {self.head_width} is odd, rotary embedding needs pairs"
        for name, value in (("rope_theta", self.rope_theta), ("norm_epsilon", self.norm_epsilon)):
            if not (math.isfinite(value) and value > 0):
                return f"{name} must be finite and positive, not {value}"
        return None
