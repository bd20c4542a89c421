"""The default model's 8-bit form against a float32 decoder of the same source."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from engines.build.default_model import default_cache_path, obtain_default_gguf
from engines.build.gguf_source import GgufModel
from engines.build.progress import SilentProgress
from engines.onnx.decoder import Decoder
from engines.onnx.passes import LaneInput
from tests.engines.build.reference_decoder import ReferenceDecoder

TEXT = (
    "<|im_start|>user\nWhy is the sky blue?<|im_end|>\n<|im_start|>assistant\n"
    "The sky looks blue because air scatters short wavelengths of sunlight more strongly than "
    "long ones. Blue light is sent in every direction, so it reaches our eyes from the whole sky."
)


def log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def no_download(cache: Path) -> Path:
    pytest.skip(f"the model's source is no longer in {cache}")


@pytest.mark.model
def test_default_model_keeps_the_float_distribution(default_bundle) -> None:
    """Mean divergence in nats a token, and how often both would choose the same token."""
    tokenizer = Tokenizer.from_file(str(default_bundle.tokenizer_path))
    tokens = tuple(tokenizer.encode(TEXT, add_special_tokens=False).ids)
    decoder = Decoder(default_bundle, max_slots=1, max_context=128)
    (rows,) = decoder.forward([LaneInput(decoder.open(), 0, tokens, len(tokens))])
    source = obtain_default_gguf(default_cache_path(), SilentProgress(), no_download)
    model = GgufModel(source)

    exact = log_softmax(ReferenceDecoder(model.description, model).logits(tokens))
    served = log_softmax(rows.astype(np.float64))

    divergence = (np.exp(exact) * (exact - served)).sum(axis=-1).mean()
    agreement = (exact.argmax(axis=-1) == served.argmax(axis=-1)).mean()
    assert divergence < 0.02
    assert agreement > 0.9
