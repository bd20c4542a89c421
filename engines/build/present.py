"""Whether a build would only make again what is there."""

from __future__ import annotations

from pathlib import Path

from engines.build.onnx_emitter import EmitOptions
from engines.bundle.bundle import load_bundle
from service.errors import BundleError


def is_present(path: Path, source_sha256: str, options: EmitOptions) -> bool:
    """Whether a whole bundle of this source and this form lies at `path`.

    A damaged one counts as absent: building replaces it.
    """
    try:
        manifest = load_bundle(path).manifest
    except BundleError:
        return False
    graph = manifest.graph
    found = (graph.weights, graph.lowering, graph.hidden_after_layers)
    wanted = (options.weights.value, options.lowering.value, options.hidden_after_layers)
    return manifest.source.sha256 == source_sha256 and found == wanted
