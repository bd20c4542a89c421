"""Emitted graphs, run and compared with a plain decoder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from engines.build.build import write_bundle
from engines.build.description import llama_description
from engines.build.onnx_emitter import EmitOptions, Lowering, Weights, rotary_tables
from engines.build.progress import SilentProgress
from engines.build.quantise import dequantise, quantise
from engines.build.synthetic import RandomWeights, synthetic_parts, tiny_geometry
from engines.bundle.bundle import Bundle, load_bundle
from engines.onnx.decoder import Decoder
from engines.onnx.passes import LaneInput
from engines.onnx.session import open_session
from tests.engines.build.reference_decoder import ReferenceDecoder

TOKENS = tuple(int(token) for token in np.random.default_rng(3).integers(0, 265, 40))
PARTS = synthetic_parts("tiny", seed=7)


def build(path: Path, options: EmitOptions) -> Bundle:
    write_bundle(PARTS, path, options, SilentProgress())
    return load_bundle(path)


def logits_of(bundle: Bundle) -> np.ndarray:
    decoder = Decoder(bundle, max_slots=1, max_context=64)
    (rows,) = decoder.forward([LaneInput(decoder.open(), 0, TOKENS, len(TOKENS))])
    return rows


class RoundedWeights:
    """Weights as their 8-bit blocks stand for them."""

    def array(self, name: str) -> np.ndarray:
        weight = PARTS.weights.array(name)
        return weight if weight.ndim == 1 else dequantise(quantise(weight))


@pytest.mark.parametrize("lowering", Lowering)
def test_float_graph_equals_the_reference(tmp_path, lowering) -> None:
    bundle = build(tmp_path / "m", EmitOptions(Weights.F32, lowering))

    expected = ReferenceDecoder(PARTS.description, PARTS.weights).logits(TOKENS)

    assert logits_of(bundle) == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("lowering", Lowering)
def test_quantised_graph_follows_the_reference_of_its_weights(tmp_path, lowering) -> None:
    """What remains is the rounding of activations."""
    bundle = build(tmp_path / "m", EmitOptions(Weights.W8, lowering))
    expected = ReferenceDecoder(PARTS.description, RoundedWeights()).logits(TOKENS)

    error = logits_of(bundle) - expected

    assert np.sqrt((error**2).mean()) < 0.04 * expected.std()


def test_scaled_rope_divides_the_frequencies(tmp_path) -> None:
    """Llama 3 stretches its slow frequencies by factors in the file."""
    geometry = PARTS.description.geometry
    factors = np.linspace(1, 8, geometry.head_width // 2).astype(np.float32)

    class ScaledWeights:
        def array(self, name: str) -> np.ndarray:
            return factors if name == "rope.factors" else PARTS.weights.array(name)

    description = llama_description(geometry, tied=True, scaled_rope=True)
    parts = PARTS.__class__(
        "scaled", "none", PARTS.source, description, ScaledWeights(), PARTS.tokenizer
    )
    write_bundle(parts, tmp_path / "m", EmitOptions(Weights.F32), SilentProgress())

    expected = ReferenceDecoder(description, ScaledWeights()).logits(TOKENS)

    assert logits_of(load_bundle(tmp_path / "m")) == pytest.approx(expected, abs=2e-4)


def test_untied_head_has_its_own_weight(tmp_path) -> None:
    geometry = PARTS.description.geometry

    class HeadWeights:
        def array(self, name: str) -> np.ndarray:
            return -PARTS.weights.array("embedding" if name == "head" else name)

    description = llama_description(geometry, tied=False, scaled_rope=False)
    parts = PARTS.__class__(
        "untied", "none", PARTS.source, description, HeadWeights(), PARTS.tokenizer
    )
    write_bundle(parts, tmp_path / "m", EmitOptions(Weights.F32), SilentProgress())

    expected = ReferenceDecoder(description, HeadWeights()).logits(TOKENS)

    assert logits_of(load_bundle(tmp_path / "m")) == pytest.approx(expected, abs=2e-4)


def test_hidden_states_are_the_residual_streams(tmp_path) -> None:
    bundle = build(tmp_path / "m", EmitOptions(Weights.F32, hidden_after_layers=(0, 1)))
    geometry = PARTS.description.geometry
    rows = len(TOKENS)
    counting = np.arange(rows)
    cache = np.zeros((1, geometry.kv_heads, 64, geometry.head_width), np.float32)
    inputs = {
        "ids": np.array(TOKENS),
        "rows": np.array([rows - 1]),
        "spread": counting[None],
        "places": counting,
        "positions": counting[None],
        "write": np.array([0]),
        "mask": np.where(np.arange(64) > counting[:, None], np.float32(-1e9), np.float32(0))[
            None, None
        ],
    }
    for layer in range(geometry.layers):
        inputs |= {f"past_key_{layer}": cache, f"past_value_{layer}": cache}

    hidden = open_session(bundle, 2).run(["hidden_0", "hidden_1"], inputs)

    expected = ReferenceDecoder(PARTS.description, PARTS.weights).streams(TOKENS)
    for stream, computed in zip(expected, hidden, strict=True):
        assert computed == pytest.approx(stream, abs=2e-4)


@pytest.mark.parametrize("weights", Weights)
def test_tied_embedding_is_stored_once(tmp_path, weights) -> None:
    bundle = build(tmp_path / "m", EmitOptions(weights))
    graph = onnx.load(bundle.graph_path, load_external_data=False).graph

    names = [tensor.name for tensor in graph.initializer if "embedding" in tensor.name]

    assert (2 if weights is Weights.W8 else 1) == len(names)


def test_graph_is_the_form_that_the_manifest_states(tmp_path) -> None:
    options = EmitOptions(Weights.F32, Lowering.TS, hidden_after_layers=(1,))
    bundle = build(tmp_path / "m", options)
    model = onnx.load(bundle.graph_path, load_external_data=False)
    operators = {node.op_type for node in model.graph.node}

    graph = bundle.manifest.graph

    assert ("ts", "f32", (1,), 24) == (
        graph.lowering,
        graph.weights,
        graph.hidden_after_layers,
        graph.opset,
    )
    assert {"TensorScatter", "Attention", "Gemm"} <= operators
    assert not {"Softmax", "MatMulNBits"} & operators
    assert {each.name for each in model.graph.input} == set(graph.inputs)
    assert {each.name for each in model.graph.output} == set(graph.outputs)


def test_rotary_tables_begin_without_rotation_and_stay_on_the_circle() -> None:
    cosines, sines = rotary_tables(tiny_geometry(265), None, 100)

    assert (100, 8) == cosines.shape
    assert (1.0 == cosines[0]).all()
    assert (0.0 == sines[0]).all()
    assert cosines**2 + sines**2 == pytest.approx(1, abs=1e-6)


def test_random_weights_depend_on_seed_and_name() -> None:
    geometry = tiny_geometry(265)
    first = RandomWeights(geometry, 1).array("layers.0.attention.query")

    assert (first == RandomWeights(geometry, 1).array("layers.0.attention.query")).all()
    assert (first != RandomWeights(geometry, 2).array("layers.0.attention.query")).any()
    assert (first != RandomWeights(geometry, 1).array("layers.1.attention.query")).any()
