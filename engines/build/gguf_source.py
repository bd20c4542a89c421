"""Read a llama model from GGUF: its description, its weights and its metadata."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import gguf
import numpy as np

from engines.build.description import Description, Floats, llama_description
from engines.bundle.geometry import Geometry
from service.errors import BundleError

T = TypeVar("T")

_TOP_NAMES = {
    "embedding": "token_embd.weight",
    "norm": "output_norm.weight",
    "head": "output.weight",
    "rope.factors": "rope_freqs.weight",
}
_LAYER_NAMES = {
    "attention.norm": "attn_norm.weight",
    "attention.query": "attn_q.weight",
    "attention.key": "attn_k.weight",
    "attention.value": "attn_v.weight",
    "attention.output": "attn_output.weight",
    "feed_forward.norm": "ffn_norm.weight",
    "feed_forward.gate": "ffn_gate.weight",
    "feed_forward.up": "ffn_up.weight",
    "feed_forward.down": "ffn_down.weight",
}


class GgufModel:
    """An open GGUF file of a llama-family model; a `WeightSource`.

    Raises BundleError, naming the file and the metadata key or tensor, for
    whatever it cannot represent exactly.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._reader = gguf.GGUFReader(path)
        except (OSError, ValueError, IndexError) as broken:
            raise BundleError(f"is not a readable GGUF file: {broken}", path=str(path)) from broken
        self._tensors = {tensor.name: tensor for tensor in self._reader.tensors}
        self.description = self._describe()

    def array(self, name: str) -> Floats:
        """Read one canonical weight in float32; projections are `[outputs, inputs]`."""
        tensor = self._tensors.get(_gguf_name(name))
        if tensor is None:
            raise BundleError("tensor is missing", path=str(self.path), field=_gguf_name(name))
        data = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        values: Floats = np.ascontiguousarray(data, dtype=np.float32)
        geometry = self.description.geometry
        if name.endswith("attention.query"):
            return _separate_rotary_halves(values, geometry.query_heads)
        if name.endswith("attention.key"):
            return _separate_rotary_halves(values, geometry.kv_heads)
        return values

    def text(self, key: str, default: str | None = None) -> str:
        return self._field(key, str, default)

    def integer(self, key: str, default: int | None = None) -> int:
        return self._field(key, int, default)

    def flag(self, key: str, *, default: bool) -> bool:
        return self._field(key, bool, default)

    def strings(self, key: str) -> list[str]:
        return self._list(key, str)

    def integers(self, key: str) -> list[int]:
        return self._list(key, int)

    def has(self, key: str) -> bool:
        return key in self._reader.fields

    def _number(self, key: str, default: float | None = None) -> float:
        return self._field(key, float, default)

    def _list(self, key: str, kind: type[T]) -> list[T]:
        values = self._field(key, list, None)
        if not all(isinstance(value, kind) for value in values):
            message = f"metadata must be a list of {kind.__name__}"
            raise BundleError(message, path=str(self.path), field=key)
        return values

    def _field(self, key: str, kind: type[T], default: T | None) -> T:
        field = self._reader.fields.get(key)
        if field is None:
            if default is None:
                raise BundleError("metadata is missing", path=str(self.path), field=key)
            return default
        value = field.contents()
        if not isinstance(value, kind):
            message = f"metadata must be {kind.__name__}, not {type(value).__name__}"
            raise BundleError(message, path=str(self.path), field=key)
        return value

    def _describe(self) -> Description:
        architecture = self.text("general.architecture")
        if architecture != "llama":
            message = f"architecture {architecture!r} is not supported, only llama"
            raise BundleError(message, path=str(self.path), field="general.architecture")
        self._refuse_foreign_scaling()
        geometry = self._geometry()
        if problem := geometry.problem():
            raise BundleError(problem, path=str(self.path), field="llama")
        return llama_description(
            geometry,
            tied="output.weight" not in self._tensors,
            scaled_rope="rope_freqs.weight" in self._tensors,
        )

    def _geometry(self) -> Geometry:
        width = self.integer("llama.embedding_length")
        heads = self.integer("llama.attention.head_count")
        return Geometry(
            layers=self.integer("llama.block_count"),
            width=width,
            query_heads=heads,
            kv_heads=self.integer("llama.attention.head_count_kv", heads),
            head_width=self.integer("llama.attention.key_length", width // heads),
            feed_forward_width=self.integer("llama.feed_forward_length"),
            vocabulary=int(self._tensors["token_embd.weight"].shape[1]),
            context_length=self.integer("llama.context_length"),
            rope_theta=self._number("llama.rope.freq_base", 10000.0),
            norm_epsilon=round(self._number("llama.attention.layer_norm_rms_epsilon"), 12),
        )

    def _refuse_foreign_scaling(self) -> None:
        for key in ("llama.rope.scaling.type", "llama.rope.scaling.factor"):
            if self.has(key):
                message = "this form of rotary scaling is not supported"
                raise BundleError(message, path=str(self.path), field=key)


def _gguf_name(name: str) -> str:
    if name in _TOP_NAMES:
        return _TOP_NAMES[name]
    _, index, part = name.split(".", 2)
    return f"blk.{index}.{_LAYER_NAMES[part]}"


def _separate_rotary_halves(weight: Floats, heads: int) -> Floats:
    """Undo GGUF's interleaving of rotary pairs: axes `half, 2` of each head become `2, half`."""
    outputs, inputs = weight.shape
    pairs = weight.reshape(heads, outputs // heads // 2, 2, inputs)
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(outputs, inputs)
