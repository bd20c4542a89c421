"""A tiny random model on ONNX Runtime, built once a run."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from engines.build.synthetic import build_tiny_bundle
from engines.bundle.bundle import Bundle, load_bundle
from engines.onnx.decoder import Decoder

VOCABULARY = 265


@cache
def tiny_bundle() -> Bundle:
    """Build the bundle in a directory that lasts as long as the run."""
    folder = tempfile.TemporaryDirectory(prefix="outrider-contract-")
    _folders.append(folder)
    path = Path(folder.name) / "tiny"
    build_tiny_bundle(path)
    return load_bundle(path)


_folders: list[tempfile.TemporaryDirectory[str]] = []


def tiny_decoder(slots: int, context: int) -> Decoder:
    """Make a decoder of the tiny model with empty caches."""
    return Decoder(tiny_bundle(), max_slots=slots, max_context=context, threads=2)
