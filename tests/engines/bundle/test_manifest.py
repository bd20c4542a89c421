"""Manifests: written, read again, and refused with the place that is wrong."""

import json
from pathlib import Path

import pytest

from engines.bundle.bundle import Bundle
from engines.bundle.manifest import MANIFEST_FILE, read_manifest
from service.errors import BundleError


@pytest.fixture
def document(tiny_bundle: Bundle) -> dict:
    return json.loads((tiny_bundle.path / MANIFEST_FILE).read_text())


def refusal(directory: Path, text: str) -> BundleError:
    (directory / MANIFEST_FILE).write_text(text)
    with pytest.raises(BundleError) as caught:
        read_manifest(directory)
    assert str(directory / MANIFEST_FILE) == caught.value.path
    return caught.value


def test_manifest_read_again_is_the_same(tiny_bundle, tmp_path) -> None:
    (tmp_path / MANIFEST_FILE).write_text(tiny_bundle.manifest.to_json())

    assert tiny_bundle.manifest == read_manifest(tmp_path)


def test_manifest_that_is_absent_is_refused(tmp_path) -> None:
    with pytest.raises(BundleError, match="no bundle was completed here"):
        read_manifest(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "\x00", "[" * 100_000])
def test_manifest_that_is_no_json_object_is_refused(tmp_path, text) -> None:
    assert refusal(tmp_path, text).field is None


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_manifest_of_another_format_names_the_field(tmp_path, document, version) -> None:
    document["format_version"] = version

    assert "format_version" == refusal(tmp_path, json.dumps(document)).field


def test_manifest_with_a_field_missing_names_it(tmp_path, document) -> None:
    del document["geometry"]["layers"]

    assert "geometry.layers" == refusal(tmp_path, json.dumps(document)).field


def test_manifest_with_a_wrong_type_names_the_field(tmp_path, document) -> None:
    document["tokens"]["eos"] = ["2"]

    assert "tokens.eos[0]" == refusal(tmp_path, json.dumps(document)).field


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("layers", 0),
        ("kv_heads", 3),
        ("head_width", 15),
        ("rope_theta", 0.0),
        ("rope_theta", float("nan")),
        ("rope_theta", float("inf")),
        ("norm_epsilon", float("-inf")),
    ],
)
def test_manifest_with_impossible_geometry_is_refused(tmp_path, document, field, value) -> None:
    document["geometry"][field] = value

    assert "geometry" == refusal(tmp_path, json.dumps(document)).field
