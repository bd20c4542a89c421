"""When a bundle counts as built already."""

import pytest

from engines.build.build import build_bundle
from engines.build.onnx_emitter import EmitOptions, Lowering, Weights
from engines.build.present import is_present
from engines.build.progress import SilentProgress
from engines.bundle.checksum import sha256_file
from tests.engines.build.tiny_gguf import write_tiny_gguf

OPTIONS = EmitOptions()


@pytest.fixture
def built(tmp_path):
    """Return a bundle's place and the checksum of its source."""
    source = write_tiny_gguf(tmp_path / "tiny.gguf")
    build_bundle(source, tmp_path / "tiny", OPTIONS, SilentProgress())
    return tmp_path / "tiny", sha256_file(source)


def test_bundle_of_the_same_source_and_form_is_present(built):
    assert is_present(*built, OPTIONS)


def test_bundle_of_another_source_is_not_present(built):
    assert not is_present(built[0], "00" * 32, OPTIONS)


@pytest.mark.parametrize(
    "options",
    [
        EmitOptions(Weights.F32),
        EmitOptions(Weights.W8, Lowering.TS),
        EmitOptions(hidden_after_layers=(1,)),
    ],
)
def test_bundle_of_another_form_is_not_present(built, options):
    assert not is_present(*built, options)


def test_damaged_bundle_is_not_present(built):
    (built[0] / "tokenizer.json").write_text("{}")

    assert not is_present(*built, OPTIONS)


def test_missing_bundle_is_not_present(tmp_path):
    assert not is_present(tmp_path / "none", "00" * 32, OPTIONS)
