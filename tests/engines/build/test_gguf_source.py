"""GGUF files: weights as the description means them, and refusals that name the key."""

import numpy as np
import pytest

from engines.build.gguf_source import GgufModel
from engines.build.synthetic import RandomWeights
from service.errors import BundleError
from tests.engines.build.tiny_gguf import GEOMETRY, SEED, write_tiny_gguf


@pytest.mark.parametrize(
    "name", ["embedding", "norm", "layers.1.attention.norm", "layers.0.attention.query",
             "layers.1.attention.key", "layers.0.attention.value", "layers.1.feed_forward.down"]
)  # fmt: skip
def test_weights_from_gguf_are_those_of_the_model(tmp_path, name) -> None:
    """The interleaving of rotary pairs is undone for queries and keys, and only there."""
    model = GgufModel(write_tiny_gguf(tmp_path / "m.gguf"))

    assert (RandomWeights(GEOMETRY, SEED).array(name) == model.array(name)).all()


def test_description_from_gguf_has_its_geometry(tmp_path) -> None:
    description = GgufModel(write_tiny_gguf(tmp_path / "m.gguf")).description

    assert GEOMETRY == description.geometry
    assert "embedding" == description.head
    assert description.rope.factors is None
    assert GEOMETRY.layers == len(description.layers)


def test_quantised_tensors_are_read_as_floats(tmp_path) -> None:
    model = GgufModel(write_tiny_gguf(tmp_path / "m.gguf", packed="ffn_down"))
    expected = RandomWeights(GEOMETRY, SEED).array("layers.0.feed_forward.down")

    weight = model.array("layers.0.feed_forward.down")

    assert np.float32 == weight.dtype
    assert weight == pytest.approx(expected, abs=float(np.abs(expected).max()) / 127)
    assert (weight != expected).any()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"general.architecture": "mamba"}, "general.architecture"),
        ({"llama.block_count": None}, "llama.block_count"),
        ({"llama.block_count": "two"}, "llama.block_count"),
        ({"llama.attention.head_count_kv": 3}, "llama"),
        ({"llama.attention.head_count_kv": [4, 2]}, "llama.attention.head_count_kv"),
        ({"llama.attention.value_length": 8}, "llama.attention.value_length"),
        ({"llama.attention.scale": 0.5}, "llama.attention.scale"),
        ({"llama.expert_count": 8}, "llama.expert_count"),
        ({"llama.rope.dimension_count": 8}, "llama.rope.dimension_count"),
        ({"llama.rope.scaling.type": "yarn"}, "llama.rope.scaling.type"),
        ({"llama.rope.scaling.factor": 4.0}, "llama.rope.scaling.factor"),
        ({"llama.rope.scaling.attn_factor": 1.5}, "llama.rope.scaling.attn_factor"),
        ({"llama.rope.scale_linear": 2.0}, "llama.rope.scale_linear"),
        ({"llama.block_count": 1}, "blk.1.attn_norm.weight"),
        ({"llama.block_count": 3}, "blk.2.attn_norm.weight"),
        ({"llama.attention.key_length": 8}, "blk.0.attn_q.weight"),
    ],
)
def test_gguf_that_cannot_be_represented_names_the_key(tmp_path, changes, field) -> None:
    path = write_tiny_gguf(tmp_path / "m.gguf", **changes)

    with pytest.raises(BundleError) as caught:
        GgufModel(path)

    assert (str(path), field) == (caught.value.path, caught.value.field)


def test_rope_scaling_that_changes_nothing_is_accepted(tmp_path) -> None:
    neutral = {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 1.0}

    assert (
        GEOMETRY == GgufModel(write_tiny_gguf(tmp_path / "m.gguf", **neutral)).description.geometry
    )


@pytest.mark.parametrize("content", [b"", b"GGUF", b"not a model at all, but long enough"])
def test_file_that_is_no_gguf_is_refused(tmp_path, content) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(content)

    with pytest.raises(BundleError, match="not a readable GGUF"):
        GgufModel(path)


def test_file_that_is_absent_is_refused(tmp_path) -> None:
    with pytest.raises(BundleError, match="not a readable GGUF"):
        GgufModel(tmp_path / "absent.gguf")
