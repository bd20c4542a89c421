"""Whole builds: from a GGUF file to a bundle that loads and runs."""

import hashlib
import json

import numpy as np
import pytest

from engines.build.build import build_bundle
from engines.build.onnx_emitter import EmitOptions, Weights
from engines.build.progress import SilentProgress
from engines.build.synthetic import RandomWeights, synthetic_parts
from engines.bundle.bundle import load_bundle
from engines.bundle.manifest import MANIFEST_FILE, SpecialTokens
from engines.onnx.decoder import Decoder
from engines.onnx.passes import LaneInput
from service.errors import BundleError
from tests.engines.build.reference_decoder import ReferenceDecoder
from tests.engines.build.tiny_gguf import GEOMETRY, SEED, TOKENIZER, write_tiny_gguf


class RecordingProgress:
    """Counts units against the totals that stages announce."""

    def __init__(self) -> None:
        self.stages: list[tuple[str, int]] = []
        self.done: list[int] = []

    def stage(self, title: str, total: int) -> None:
        self.stages.append((title, total))
        self.done.append(0)

    def advance(self, units: int = 1) -> None:
        self.done[-1] += units


def test_build_from_gguf_gives_a_bundle_that_states_its_origin(tmp_path) -> None:
    source = write_tiny_gguf(tmp_path / "tiny.gguf")

    manifest = build_bundle(source, tmp_path / "tiny", EmitOptions(), SilentProgress())

    bundle = load_bundle(tmp_path / "tiny", fresh=True)
    assert manifest == bundle.manifest
    assert ("tiny", "llama", "apache-2.0") == (
        manifest.model_id,
        manifest.architecture,
        manifest.licence,
    )
    assert "tiny.gguf" == manifest.source.name
    assert hashlib.sha256(source.read_bytes()).hexdigest() == manifest.source.sha256
    assert GEOMETRY == manifest.geometry
    assert TOKENIZER.fingerprint == bundle.fingerprint
    assert SpecialTokens(1, (2,), None, None, add_bos=False) == manifest.tokens
    assert "{{ messages }}" == bundle.chat_template()
    generation = json.loads(bundle.generation_config_path.read_text())
    assert ([2], 1024) == (generation["eos_token_id"], generation["max_length"])


def test_build_from_gguf_computes_the_model_in_the_file(tmp_path) -> None:
    source = write_tiny_gguf(tmp_path / "tiny.gguf")
    build_bundle(source, tmp_path / "tiny", EmitOptions(Weights.F32), SilentProgress())
    decoder = Decoder(load_bundle(tmp_path / "tiny"), max_slots=1, max_context=64)
    tokens = tuple(range(30))

    (rows,) = decoder.forward([LaneInput(decoder.open(), 0, tokens, 30)])

    description = synthetic_parts("tiny", seed=SEED).description
    expected = ReferenceDecoder(description, RandomWeights(GEOMETRY, SEED)).logits(tokens)
    assert rows == pytest.approx(np.asarray(expected), abs=2e-4)


def test_build_refuses_a_foreign_destination_before_it_reads_the_source(tmp_path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter").write_text("years of work")

    with pytest.raises(BundleError) as caught:
        build_bundle(tmp_path / "no.gguf", tmp_path / "thesis", EmitOptions(), SilentProgress())

    assert str(tmp_path / "thesis") == caught.value.path
    assert "years of work" == (tmp_path / "thesis" / "chapter").read_text()


def test_build_shows_every_stage_to_its_end(tmp_path) -> None:
    progress = RecordingProgress()
    source = write_tiny_gguf(tmp_path / "tiny.gguf")

    build_bundle(source, tmp_path / "tiny", EmitOptions(), progress)

    assert ["read source", "write layers and head", "compute checksums"] == [
        title for title, _ in progress.stages
    ]
    assert [total for _, total in progress.stages] == progress.done


def test_build_that_is_interrupted_leaves_no_bundle(tmp_path) -> None:
    class Interrupted(RecordingProgress):
        def advance(self, units: int = 1) -> None:
            super().advance(units)
            if self.stages[-1][0] == "compute checksums":
                raise KeyboardInterrupt

    source = write_tiny_gguf(tmp_path / "tiny.gguf")

    with pytest.raises(KeyboardInterrupt):
        build_bundle(source, tmp_path / "tiny", EmitOptions(), Interrupted())

    assert [source] == list(tmp_path.iterdir())
    with pytest.raises(BundleError, match="no bundle was completed here"):
        load_bundle(tmp_path / "tiny")


def test_build_without_its_manifest_does_not_count(tmp_path) -> None:
    """Whatever else lies there: the manifest is written last, and a bundle has one."""
    source = write_tiny_gguf(tmp_path / "tiny.gguf")
    build_bundle(source, tmp_path / "tiny", EmitOptions(), SilentProgress())
    (tmp_path / "tiny" / MANIFEST_FILE).unlink()

    with pytest.raises(BundleError, match="no bundle was completed here"):
        load_bundle(tmp_path / "tiny")


def test_build_twice_gives_the_same_files(tmp_path) -> None:
    source = write_tiny_gguf(tmp_path / "tiny.gguf")

    first = build_bundle(source, tmp_path / "tiny", EmitOptions(), SilentProgress())
    second = build_bundle(source, tmp_path / "tiny", EmitOptions(), SilentProgress())

    assert first == second
