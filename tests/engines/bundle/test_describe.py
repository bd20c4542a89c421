"""What a bundle says of itself to people."""

import json

from engines.bundle.describe import describe


def test_description_holds_identity_sizes_tensors_and_checksums(tiny_bundle):
    manifest = tiny_bundle.manifest
    geometry = manifest.geometry

    description = describe(tiny_bundle)

    assert manifest.model_id == description["bundle"]["model"]
    assert geometry.layers == description["geometry"]["layers"]
    assert "int64 [N]" == description["inputs"]["ids"]
    assert set(manifest.graph.outputs) == set(description["outputs"])
    assert {name: file.sha256 for name, file in manifest.files.items()} == (
        description["sha256, verified"]
    )


def test_description_states_what_a_full_slot_costs(tiny_bundle):
    geometry = tiny_bundle.manifest.geometry
    floats = geometry.layers * 2 * geometry.kv_heads * geometry.head_width

    memory = describe(tiny_bundle)["memory"]

    assert floats * 4 == memory["cache per token"]
    assert floats * 4 * geometry.context_length == memory["cache per full slot"]


def test_description_is_what_json_has(tiny_bundle):
    description = describe(tiny_bundle)

    assert description == json.loads(json.dumps(description))
