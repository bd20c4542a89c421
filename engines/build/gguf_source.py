"""Read a llama model from GGUF: its description and its weights."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

from engines.build.description import Description, Floats, llama_description, weight_shape
from engines.build.gguf_metadata import GgufMetadata
from engines.bundle.geometry import Geometry
from service.errors import BundleError

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
    whatever it cannot represent exactly: a tensor too many is refused like one
    too few, because the model would compute with it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            reader = gguf.GGUFReader(path)
        except (OSError, ValueError, IndexError) as broken:
            raise BundleError(f"is not a readable GGUF file: {broken}", path=str(path)) from broken
        self.metadata = GgufMetadata(path, reader.fields)
        self._tensors = {tensor.name: tensor for tensor in reader.tensors}
        self.description = self._describe()
        self._check_tensors()

    def array(self, name: str) -> Floats:
        """Read one canonical weight in float32; projections are `[outputs, inputs]`."""
        tensor = self._tensor(_gguf_name(name))
        data = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        values: Floats = np.ascontiguousarray(data, dtype=np.float32)
        geometry = self.description.geometry
        if name.endswith("attention.query"):
            return _separate_rotary_halves(values, geometry.query_heads)
        if name.endswith("attention.key"):
            return _separate_rotary_halves(values, geometry.kv_heads)
        return values

    def _tensor(self, name: str) -> gguf.ReaderTensor:
        if name not in self._tensors:
            raise self.metadata.refusal(name, "tensor is missing")
        return self._tensors[name]

    def _describe(self) -> Description:
        architecture = self.metadata.text("general.architecture")
        if architecture != "llama":
            message = f"architecture {architecture!r} is not supported, only llama"
            raise self.metadata.refusal("general.architecture", message)
        geometry = self._geometry()
        if problem := geometry.problem():
            raise self.metadata.refusal("llama", problem)
        self._refuse_foreign_computation(geometry)
        return llama_description(
            geometry,
            tied="output.weight" not in self._tensors,
            scaled_rope="rope_freqs.weight" in self._tensors,
        )

    def _geometry(self) -> Geometry:
        metadata = self.metadata
        width = metadata.integer("llama.embedding_length")
        heads = metadata.integer("llama.attention.head_count")
        return Geometry(
            layers=metadata.integer("llama.block_count"),
            width=width,
            query_heads=heads,
            kv_heads=metadata.integer("llama.attention.head_count_kv", heads),
            head_width=metadata.integer("llama.attention.key_length", width // max(heads, 1)),
            feed_forward_width=metadata.integer("llama.feed_forward_length"),
            vocabulary=int(self._tensor("token_embd.weight").shape[1]),
            context_length=metadata.integer("llama.context_length"),
            rope_theta=metadata.number("llama.rope.freq_base", 10000.0),
            norm_epsilon=round(metadata.number("llama.attention.layer_norm_rms_epsilon"), 12),
        )

    def _refuse_foreign_computation(self, geometry: Geometry) -> None:
        """Refuse metadata that would have the model compute something else than is described.

        A factor of 0 is one that was left out.
        """
        require = self.metadata.require
        require("llama.attention.value_length", geometry.head_width)
        require("llama.attention.scale", 0.0)
        require("llama.expert_count", 0)
        require("llama.rope.dimension_count", geometry.head_width)
        require("llama.rope.scaling.type", "none", "linear")
        require("llama.rope.scaling.factor", 1.0, 0.0)
        require("llama.rope.scale_linear", 1.0, 0.0)
        require("llama.rope.scaling.attn_factor", 1.0)

    def _check_tensors(self) -> None:
        geometry = self.description.geometry
        shapes = {_gguf_name(n): weight_shape(geometry, n) for n in self.description.weights()}
        for name, expected in shapes.items():
            found = tuple(int(size) for size in reversed(self._tensor(name).shape))
            if found != expected:
                message = f"tensor has shape {found}, the metadata asks for {expected}"
                raise self.metadata.refusal(name, message)
        for name in self._tensors:
            if name not in shapes:
                raise self.metadata.refusal(name, "tensor has no place in a llama decoder")


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
