"""Manifests whose parts contradict each other: refused with the field that does."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from engines.bundle.bundle import Bundle
from engines.bundle.consistency import require_consistent
from engines.bundle.manifest import MANIFEST_FILE, Manifest, Tensor
from service.errors import BundleError


def changed(part: str, **values: Any) -> Callable[[Manifest], Manifest]:
    """Return a change of some fields in one part of a manifest."""

    def change(manifest: Manifest) -> Manifest:
        return replace(manifest, **{part: replace(getattr(manifest, part), **values)})

    return change


def outputs_with(**tensors: Tensor) -> Callable[[Manifest], Manifest]:
    """Return a change of some outputs of the graph."""
    return lambda manifest: changed("graph", outputs=manifest.graph.outputs | tensors)(manifest)


def fingerprinted(fingerprint: str) -> Callable[[Manifest], Manifest]:
    """Return a change of the fingerprint."""
    return lambda manifest: replace(manifest, tokenizer_fingerprint=fingerprint)


def listing(name: str) -> Callable[[Manifest], Manifest]:
    """Return an additional entry of the files."""
    return lambda given: replace(
        given, files=given.files | {name: next(iter(given.files.values()))}
    )


def test_manifest_of_a_built_bundle_is_consistent(tiny_bundle: Bundle) -> None:
    require_consistent(tiny_bundle.path, tiny_bundle.manifest)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (changed("tokens", eos=(2, 265)), "tokens.eos[1]"),
        (changed("tokens", eos=(-1,)), "tokens.eos[0]"),
        (changed("tokens", bos=265), "tokens.bos"),
        (changed("tokens", pad=-1), "tokens.pad"),
        (changed("tokens", unknown=10**9), "tokens.unknown"),
        (changed("geometry", layers=1), "geometry.layers"),
        (changed("geometry", layers=10**15), "geometry.layers"),
        (changed("geometry", kv_heads=4), "geometry.kv_heads"),
        (changed("geometry", head_width=32), "geometry.head_width"),
        (changed("geometry", vocabulary=264), "geometry.vocabulary"),
        (changed("geometry", vocabulary=300), "geometry.vocabulary"),
        (changed("graph", inputs={}), "geometry.layers"),
        (outputs_with(present_key_0=Tensor("float32", ("B",))), "geometry"),
        (outputs_with(logits=Tensor("float32", ())), "geometry.vocabulary"),
        (fingerprinted("zz" * 32), "tokenizer_fingerprint"),
        (fingerprinted("00" * 31), "tokenizer_fingerprint"),
        (fingerprinted(""), "tokenizer_fingerprint"),
        (listing("../secret"), "files.../secret"),
        (listing(".."), "files..."),
    ],
)
def test_manifest_that_contradicts_itself_names_the_field(tiny_bundle, change, field) -> None:
    with pytest.raises(BundleError) as caught:
        require_consistent(tiny_bundle.path, change(tiny_bundle.manifest))

    assert str(tiny_bundle.path / MANIFEST_FILE) == caught.value.path
    assert field == caught.value.field
