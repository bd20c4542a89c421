"""Write the tiny random model as GGUF, the way converters lay llama models out."""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np

from engines.build.synthetic import RandomWeights, byte_tokenizer, tiny_geometry

SEED = 5
Q8_0 = gguf.GGMLQuantizationType.Q8_0
NAMES = {
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


def write_tiny_gguf(path: Path, packed: str = "", **changes: object) -> Path:
    """Write the model, tensors of the name `packed` in Q8_0.

    `changes` replace metadata by key; None leaves a key out.
    """
    writer = gguf.GGUFWriter(path, arch=str(changes.get("general.architecture", "llama")))
    for key, value in (_metadata() | changes).items():
        _add(writer, key, value)
    weights = RandomWeights(GEOMETRY, SEED)
    writer.add_tensor("token_embd.weight", weights.array("embedding"))
    writer.add_tensor("output_norm.weight", weights.array("norm"))
    for layer in range(GEOMETRY.layers):
        for ours, theirs in NAMES.items():
            array = weights.array(f"layers.{layer}.{ours}")
            if ours == "attention.query":
                array = interleave(array, GEOMETRY.query_heads)
            if ours == "attention.key":
                array = interleave(array, GEOMETRY.kv_heads)
            name = f"blk.{layer}.{theirs}.weight"
            if theirs == packed:
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


def _metadata() -> dict[str, object]:
    ids = TOKENIZER.tokenizer.get_vocab()
    specials = {token.content for token in TOKENIZER.tokenizer.get_added_tokens_decoder().values()}
    tokens = sorted(ids, key=ids.__getitem__)
    return {
        "general.license": "apache-2.0",
        "llama.block_count": GEOMETRY.layers,
        "llama.embedding_length": GEOMETRY.width,
        "llama.attention.head_count": GEOMETRY.query_heads,
        "llama.attention.head_count_kv": GEOMETRY.kv_heads,
        "llama.feed_forward_length": GEOMETRY.feed_forward_width,
        "llama.context_length": GEOMETRY.context_length,
        "llama.rope.freq_base": GEOMETRY.rope_theta,
        "llama.attention.layer_norm_rms_epsilon": GEOMETRY.norm_epsilon,
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
