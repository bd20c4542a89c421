"""Build a bundle: emit the graph, write tokenizer and configuration, seal with a manifest."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from engines.build.description import Description, WeightSource
from engines.build.gguf_source import GgufModel
from engines.build.onnx_emitter import EmitOptions, emit_decoder
from engines.build.onnx_graph import OPSET, GraphWriter
from engines.build.progress import BuildProgress
from engines.build.staging import require_replaceable, staged_directory
from engines.build.tokenizer import BuiltTokenizer, tokenizer_from_gguf
from engines.bundle.checksum import sha256_file
from engines.bundle.manifest import (
    CHAT_TEMPLATE_FILE,
    FORMAT_VERSION,
    GENERATION_FILE,
    MANIFEST_FILE,
    TOKENIZER_FILE,
    FileEntry,
    Graph,
    Manifest,
    Source,
)

GRAPH_FILE = "decoder.onnx"
WEIGHTS_FILE = "decoder.weights"


@dataclass(frozen=True, slots=True)
class ModelParts:
    """What a bundle is made of, wherever it came from."""

    model_id: str
    licence: str
    source: Source
    description: Description
    weights: WeightSource
    tokenizer: BuiltTokenizer


def build_bundle(
    source: Path, destination: Path, options: EmitOptions, progress: BuildProgress
) -> Manifest:
    """Build the bundle of a GGUF file at `destination`, which names the model.

    A bundle that is there already is replaced, and nothing else is.

    Raises BundleError, naming file and field, for a source that cannot be
    represented exactly, and a `destination` that holds anything but a bundle;
    then, as after any failure, `destination` is untouched.
    """
    require_replaceable(destination)
    progress.stage("read source", 2)
    model = GgufModel(source)
    progress.advance()
    parts = _gguf_parts(model, destination.name)
    progress.advance()
    return write_bundle(parts, destination, options, progress)


def write_bundle(
    parts: ModelParts, destination: Path, options: EmitOptions, progress: BuildProgress
) -> Manifest:
    """Write a bundle from its parts; `destination` appears whole or not at all."""
    with staged_directory(destination) as staging:
        graph = _write_graph(staging, parts, options, progress)
        _write_texts(staging, parts)
        manifest = _seal(staging, parts, graph, progress)
        (staging / MANIFEST_FILE).write_text(manifest.to_json(), encoding="utf-8")
    return manifest


def _gguf_parts(model: GgufModel, model_id: str) -> ModelParts:
    return ModelParts(
        model_id=model_id,
        licence=model.metadata.text("general.license", "unknown"),
        source=Source(model.path.name, sha256_file(model.path)),
        description=model.description,
        weights=model,
        tokenizer=tokenizer_from_gguf(model),
    )


def _write_graph(
    staging: Path, parts: ModelParts, options: EmitOptions, progress: BuildProgress
) -> Graph:
    progress.stage("write layers and head", len(parts.description.layers) + 1)
    with (staging / WEIGHTS_FILE).open("wb") as file:
        graph = GraphWriter(file, WEIGHTS_FILE)
        emit_decoder(graph, parts.description, parts.weights, options, progress.advance)
        graph.save(staging / GRAPH_FILE, producer=tool_version())
    return Graph(
        file=GRAPH_FILE,
        opset=OPSET,
        lowering=options.lowering.value,
        weights=options.weights.value,
        hidden_after_layers=options.hidden_after_layers,
        inputs=graph.inputs,
        outputs=graph.outputs,
    )


def _write_texts(staging: Path, parts: ModelParts) -> None:
    parts.tokenizer.save(staging / TOKENIZER_FILE)
    tokens = parts.tokenizer.tokens
    generation = {
        "bos_token_id": tokens.bos,
        "eos_token_id": list(tokens.eos),
        "pad_token_id": tokens.pad,
        "max_length": parts.description.geometry.context_length,
    }
    text = json.dumps(generation, indent=2) + "\n"
    (staging / GENERATION_FILE).write_text(text, encoding="utf-8")
    if parts.tokenizer.chat_template is not None:
        path = staging / CHAT_TEMPLATE_FILE
        path.write_text(parts.tokenizer.chat_template, encoding="utf-8")


def _seal(staging: Path, parts: ModelParts, graph: Graph, progress: BuildProgress) -> Manifest:
    files = sorted(staging.iterdir())
    progress.stage("compute checksums", len(files))
    return Manifest(
        format_version=FORMAT_VERSION,
        model_id=parts.model_id,
        architecture=parts.description.architecture,
        licence=parts.licence,
        tool=tool_version(),
        source=parts.source,
        geometry=parts.description.geometry,
        graph=graph,
        tokens=parts.tokenizer.tokens,
        tokenizer_fingerprint=parts.tokenizer.fingerprint.hex(),
        has_chat_template=parts.tokenizer.chat_template is not None,
        files={path.name: _entry(path, progress.advance) for path in files},
    )


def _entry(path: Path, done: Callable[[], None]) -> FileEntry:
    entry = FileEntry(path.stat().st_size, sha256_file(path))
    done()
    return entry


def tool_version() -> str:
    """Name this tool and its version; a source tree that is not installed says so."""
    try:
        return f"outrider {metadata.version('outrider')}"
    except metadata.PackageNotFoundError:
        return "outrider (not installed)"
