"""A bundle in words and numbers, for people and for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from engines.bundle.bundle import Bundle
from engines.bundle.manifest import Manifest, Tensor

Description = dict[str, dict[str, object]]
"""Facts by section and name."""


def describe(bundle: Bundle) -> Description:
    """Return what a bundle is, takes, gives and costs.

    `memory` counts bytes of keys and values; a slot is full at the context length.
    """
    manifest = bundle.manifest
    geometry = manifest.geometry
    return {
        "bundle": {"path": str(bundle.path), **_identity(manifest)},
        "geometry": asdict(geometry),
        "memory": {
            "files": sum(entry.bytes for entry in manifest.files.values()),
            "cache per token": geometry.cache_bytes_per_token,
            "cache per full slot": geometry.cache_bytes_per_token * geometry.context_length,
        },
        "speculation": _speculation(manifest),
        "inputs": _tensors(manifest.graph.inputs),
        "outputs": _tensors(manifest.graph.outputs),
        "sha256, verified": {name: entry.sha256 for name, entry in manifest.files.items()},
    }


def _identity(manifest: Manifest) -> dict[str, object]:
    return {
        "model": manifest.model_id,
        "architecture": manifest.architecture,
        "licence": manifest.licence,
        "built by": manifest.tool,
        "source": manifest.source.name,
        "source sha256": manifest.source.sha256,
        "format": manifest.format_version,
        "weights": manifest.graph.weights,
        "lowering": manifest.graph.lowering,
        "opset": manifest.graph.opset,
        "end of sequence": list(manifest.tokens.eos),
        "chat template": manifest.has_chat_template,
        "tokenizer fingerprint": manifest.tokenizer_fingerprint,
    }


def _speculation(manifest: Manifest) -> dict[str, object]:
    layers = manifest.graph.hidden_after_layers
    return {
        "prompt lookup": "ready",
        "draft model": "ready with any bundle of the same tokenizer fingerprint",
        "hidden states": f"after layers {list(layers)}" if layers else "none are given",
    }


def _tensors(tensors: Mapping[str, Tensor]) -> dict[str, object]:
    return {name: f"{each.dtype} [{', '.join(each.shape)}]" for name, each in tensors.items()}
