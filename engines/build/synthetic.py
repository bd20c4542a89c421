"""A tiny random model in the form of a real one: tests and development need no download."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

from engines.build.build import ModelParts, write_bundle
from engines.build.description import Floats, llama_description, weight_shape
from engines.build.onnx_emitter import EmitOptions
from engines.build.progress import SilentProgress
from engines.build.tokenizer import BuiltTokenizer
from engines.bundle.fingerprint import tokenizer_fingerprint
from engines.bundle.geometry import Geometry
from engines.bundle.manifest import Manifest, Source, SpecialTokens

_DEFAULT_OPTIONS = EmitOptions()
_SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_MERGES = (("Ġ", "t"), ("h", "e"), ("Ġt", "he"), ("i", "n"), ("a", "n"), ("e", "r"))
_CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


class RandomWeights:
    """A `WeightSource` whose arrays depend on a seed and their name only."""

    def __init__(self, geometry: Geometry, seed: int) -> None:
        self._geometry = geometry
        self._seed = seed

    def array(self, name: str) -> Floats:
        """Draw one weight; vectors, such as norms, are all ones."""
        shape = weight_shape(self._geometry, name)
        if len(shape) == 1:
            return np.ones(shape, np.float32)
        generator = np.random.default_rng([self._seed, *name.encode()])
        # Twice the variance-keeping scale: attention and logits become decisive.
        return generator.normal(0, 2 * shape[1] ** -0.5, shape).astype(np.float32)


def tiny_geometry(vocabulary: int) -> Geometry:
    """Give sizes that run in a fraction of a millisecond, with grouped heads and two layers."""
    return Geometry(
        layers=2,
        width=64,
        query_heads=4,
        kv_heads=2,
        head_width=16,
        feed_forward_width=128,
        vocabulary=vocabulary,
        context_length=1024,
        rope_theta=10000.0,
        norm_epsilon=1e-5,
    )


def byte_tokenizer() -> BuiltTokenizer:
    """Build a tokenizer of every byte, a few merges and three special tokens."""
    symbols = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = [*_SPECIAL, *symbols, *("".join(merge) for merge in _MERGES)]
    ids = {token: index for index, token in enumerate(vocabulary)}
    tokenizer = Tokenizer(BPE(vocab=ids, merges=list(_MERGES)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in _SPECIAL])
    return BuiltTokenizer(
        tokenizer=tokenizer,
        fingerprint=tokenizer_fingerprint(vocabulary, _MERGES),
        tokens=SpecialTokens(bos=1, eos=(2,), pad=0, unknown=None, add_bos=False),
        chat_template=_CHAT_TEMPLATE,
    )


def synthetic_parts(model_id: str, *, seed: int) -> ModelParts:
    """Make the parts of a tiny random model; two seeds share a tokenizer but no weight."""
    tokenizer = byte_tokenizer()
    geometry = tiny_geometry(tokenizer.tokenizer.get_vocab_size())
    return ModelParts(
        model_id=model_id,
        licence="Apache-2.0",
        source=Source(f"random numbers of seed {seed}", ""),
        description=llama_description(geometry, tied=True, scaled_rope=False),
        weights=RandomWeights(geometry, seed),
        tokenizer=tokenizer,
    )


def build_tiny_bundle(
    destination: Path, *, seed: int = 0, options: EmitOptions = _DEFAULT_OPTIONS
) -> Manifest:
    """Build the bundle of a tiny random model (well under a second, 200 kB)."""
    parts = synthetic_parts(destination.name, seed=seed)
    return write_bundle(parts, destination, options, SilentProgress())
