"""A tiny random model in the form of Llama 3, and its tokenizer as Hugging Face configures it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, pre_tokenizers

from engines.build.description import llama_description
from engines.build.synthetic import RandomWeights
from engines.bundle.geometry import Geometry
from tests.engines.build.tiny_gguf import TinyModel, write_gguf

SEED = 9
MERGES = ["Ġ t", "h e", "Ġt he", "i n", "r a", "a in", "3 4", "1 2", "12 3", "Ċ Ċ", "M A"]
WHOLE = ["ra", "ain", "Ġrain", "123"]
"""Tokens to which no merge leads, or leads only past others."""
SPECIALS = [
    "<|begin_of_text|>",
    "<|end_of_text|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eom_id|>",
    "<|eot_id|>",
]
ORDINARY = list(
    dict.fromkeys(
        [
            *sorted(pre_tokenizers.ByteLevel.alphabet()),
            *(merge.replace(" ", "") for merge in MERGES),
            *WHOLE,
        ]
    )
)
BOS, END_OF_TEXT, _, _, EOM, EOT = range(len(ORDINARY), len(ORDINARY) + len(SPECIALS))
GEOMETRY = Geometry(
    layers=2,
    width=48,
    query_heads=8,
    kv_heads=2,
    head_width=16,
    feed_forward_width=96,
    vocabulary=len(ORDINARY) + len(SPECIALS),
    context_length=256,
    rope_theta=500000.0,
    norm_epsilon=1e-5,
)
TEMPLATE = (
    "{{- bos_token }}{% for message in messages %}"
    "<|start_header_id|>{{ message['role'] }}<|end_header_id|>\n\n"
    "{{ message['content'] }}<|eot_id|>"
    "{% endfor %}"
)


class LlamaWeights(RandomWeights):
    """Random weights whose rotary factors stretch the slow frequencies."""

    def array(self, name: str) -> np.ndarray:
        weight = super().array(name)
        return (
            np.linspace(1, 8, len(weight), dtype=np.float32) if name == "rope.factors" else weight
        )


def tiny_llama(kv_heads: int = GEOMETRY.kv_heads) -> TinyModel:
    """Give a model with an untied head, rotary factors, and heads wider than width / heads."""
    geometry = replace(GEOMETRY, kv_heads=kv_heads)
    metadata = {
        "llama.attention.key_length": geometry.head_width,
        "llama.attention.value_length": geometry.head_width,
        "llama.rope.dimension_count": geometry.head_width,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "llama-bpe",
        "tokenizer.ggml.tokens": [*ORDINARY, *SPECIALS],
        "tokenizer.ggml.token_type": [1] * len(ORDINARY) + [3] * len(SPECIALS),
        "tokenizer.ggml.merges": MERGES,
        "tokenizer.ggml.bos_token_id": BOS,
        "tokenizer.ggml.eos_token_id": EOT,
        "tokenizer.chat_template": TEMPLATE,
    }
    description = llama_description(geometry, tied=False, scaled_rope=True)
    return TinyModel(description, LlamaWeights(geometry, SEED), metadata)


def write_tiny_llama(path: Path, **changes: object) -> Path:
    return write_gguf(path, tiny_llama(), **changes)


def hugging_face_tokenizer() -> Tokenizer:
    """Configure the library as Llama 3's own `tokenizer.json` does: special tokens lie apart."""
    words = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    leading = {"id": SPECIALS[0], "type_id": 0}
    document = {
        "added_tokens": [_added(text, token) for token, text in enumerate(SPECIALS, len(ORDINARY))],
        "pre_tokenizer": _chain(
            "pretokenizers",
            {
                "type": "Split",
                "pattern": {"Regex": words},
                "behavior": "Isolated",
                "invert": False,
            },
            _byte_level(add_prefix_space=False, trim_offsets=True, use_regex=False),
        ),
        "post_processor": _chain(
            "processors",
            _byte_level(add_prefix_space=True, trim_offsets=False, use_regex=True),
            {
                "type": "TemplateProcessing",
                "single": [{"SpecialToken": leading}, {"Sequence": {"id": "A", "type_id": 0}}],
                "pair": [{"Sequence": {"id": each, "type_id": 0}} for each in "AB"],
                "special_tokens": {
                    SPECIALS[0]: {"id": SPECIALS[0], "ids": [BOS], "tokens": [SPECIALS[0]]}
                },
            },
        ),
        "decoder": _byte_level(add_prefix_space=True, trim_offsets=True, use_regex=True),
        "model": {
            "type": "BPE",
            "ignore_merges": True,
            "vocab": {text: token for token, text in enumerate(ORDINARY)},
            "merges": MERGES,
        },
    }
    return Tokenizer.from_str(json.dumps(document))


def _added(text: str, token: int) -> dict[str, object]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": token, "content": text, "special": True} | flags


def _byte_level(**options: bool) -> dict[str, object]:
    return {"type": "ByteLevel"} | options


def _chain(name: str, *steps: dict[str, object]) -> dict[str, object]:
    return {"type": "Sequence", name: list(steps)}
