"""Write tiny random models as GGUF, the way converters lay llama models out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np

from engines.build.description import Description, WeightSource, llama_description
from engines.build.synthetic import RandomWeights, byte_tokenizer, tiny_geometry
from engines.bundle.geometry import Geometry

SEED = 5
Q8_0 = gguf.GGMLQuantizationType.Q8_0
NAMES = {
    "embedding": "token_embd",
    "norm": "output_norm",
    "head": "output",
    "rope.factors": "rope_freqs",
    "attention.norm": "attn_norm",
    "attention.query": "attn_q",
    "attention.key": "attn_k",
    "attention.value": "attn_v",
    "attention.output": "attn_output",
    "feed_forward.norm": "ffn_norm",
    "feed_forward.gate": "ffn_gate",
    "feed_forward.up": "ffn_up",
    "feed_forward.down": "ffn_down",
}
TOKENIZER = byte_tokenizer()
VOCABULARY = TOKENIZER.tokenizer.get_vocab_size()
GEOMETRY = tiny_geometry(VOCABULARY)


@dataclass(frozen=True)
class TinyModel:
    """A decoder, its weights, and the metadata that its file has beside its sizes."""

    description: Description
    weights: WeightSource
    metadata: dict[str, object]


def write_tiny_gguf(path: Path, packed: str = "", **changes: object) -> Path:
    """Write a model with the tokenizer of SmolLM; see `write_gguf`."""
    description = llama_description(GEOMETRY, tied=True, scaled_rope=False)
    model = TinyModel(description, RandomWeights(GEOMETRY, SEED), _tokenizer_metadata())
    return write_gguf(path, model, packed, **changes)


def write_gguf(path: Path, model: TinyModel, packed: str = "", **changes: object) -> Path:
    """Write the model, tensors of the name `packed` in Q8_0.

    `changes` replace metadata by key; None leaves a key out.
    """
    geometry = model.description.geometry
    writer = gguf.GGUFWriter(path, arch=str(changes.get("general.architecture", "llama")))
    for key, value in (_sizes(geometry) | model.metadata | changes).items():
        _add(writer, key, value)
    for ours in model.description.weights():
        array, name = model.weights.array(ours), _name(ours)
        if ours.endswith("attention.query"):
            array = interleave(array, geometry.query_heads)
        if ours.endswith("attention.key"):
            array = interleave(array, geometry.kv_heads)
        if packed and packed in name:
            writer.add_tensor(name, gguf.quants.quantize(array, Q8_0), raw_dtype=Q8_0)
        else:
            writer.add_tensor(name, array)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def interleave(weight: np.ndarray, heads: int) -> np.ndarray:
    """Lay the rotary pairs of each head side by side, as GGUF has them."""
    rows = weight.shape[0] // heads
    order = np.arange(rows).reshape(2, rows // 2).T.ravel()
    return weight.reshape(heads, rows, -1)[:, order].reshape(weight.shape).copy()


def _name(ours: str) -> str:
    if ours in NAMES:
        return f"{NAMES[ours]}.weight"
    _, layer, part = ours.split(".", 2)
    return f"blk.{layer}.{NAMES[part]}.weight"


def _sizes(geometry: Geometry) -> dict[str, object]:
    return {
        "llama.block_count": geometry.layers,
        "llama.embedding_length": geometry.width,
        "llama.attention.head_count": geometry.query_heads,
        "llama.attention.head_count_kv": geometry.kv_heads,
        "llama.feed_forward_length": geometry.feed_forward_width,
        "llama.context_length": geometry.context_length,
        "llama.rope.freq_base": geometry.rope_theta,
        "llama.attention.layer_norm_rms_epsilon": geometry.norm_epsilon,
    }


def _tokenizer_metadata() -> dict[str, object]:
    ids = TOKENIZER.tokenizer.get_vocab()
    specials = {token.content for token in TOKENIZER.tokenizer.get_added_tokens_decoder().values()}
    tokens = sorted(ids, key=ids.__getitem__)
    return {
        "general.license": "apache-2.0",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3 if token in specials else 1 for token in tokens],
        "tokenizer.ggml.merges": ["Ġ t", "h e", "Ġt he", "i n", "a n", "e r"],
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.chat_template": "{{ messages }}",
    }


def _add(writer: gguf.GGUFWriter, key: str, value: object) -> None:
    match value:
        case bool():
            writer.add_bool(key, value)
        case int():
            writer.add_uint32(key, value)
        case float():
            writer.add_float32(key, value)
        case str() if key != "general.architecture":
            writer.add_string(key, value)
        case list():
            writer.add_array(key, value)
