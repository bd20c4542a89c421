"""What a bundle says about itself: `manifest.json`, typed."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from engines.bundle.decode import MisfitError, decode
from engines.bundle.geometry import Geometry
from service.errors import BundleError

MANIFEST_FILE = "manifest.json"
TOKENIZER_FILE = "tokenizer.json"
GENERATION_FILE = "generation_config.json"
CHAT_TEMPLATE_FILE = "chat_template.jinja"
COST_FILE = ".cost.json"

FORMAT_VERSION = 1
"""Raised by one whenever a reader of the previous format would misread a bundle."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A graph input or output; a symbolic length is a name, a fixed one its number."""

    dtype: str
    shape: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Graph:
    """The compiled decoder: its file, its form and what it takes and gives."""

    file: str
    opset: int
    lowering: str
    weights: str
    hidden_after_layers: tuple[int, ...]
    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]


@dataclass(frozen=True, slots=True)
class SpecialTokens:
    """Token ids with a meaning to generation."""

    bos: int | None
    eos: tuple[int, ...]
    pad: int | None
    unknown: int | None
    add_bos: bool


@dataclass(frozen=True, slots=True)
class Source:
    """The file a bundle was built from."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class FileEntry:
    """Size and checksum of one file of the bundle."""

    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """A bundle's description of itself; `files` covers every other file in it."""

    format_version: int
    model_id: str
    architecture: str
    licence: str
    tool: str
    source: Source
    geometry: Geometry
    graph: Graph
    tokens: SpecialTokens
    tokenizer_fingerprint: str
    has_chat_template: bool
    files: dict[str, FileEntry]

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2) + "\n"


def read_manifest(bundle: Path) -> Manifest:
    """Read `manifest.json` of the bundle at `bundle`.

    Raises BundleError, naming the file and the field, when it is missing, is not
    JSON, has another format version or does not have the shape of that version.
    """
    path = bundle / MANIFEST_FILE
    document = _read_json(path)
    version = document.get("format_version")
    if version != FORMAT_VERSION:
        message = f"format {version!r} is not readable here, rebuild for {FORMAT_VERSION}"
        raise BundleError(message, path=str(path), field="format_version")
    try:
        manifest = decode(Manifest, document)
    except MisfitError as misfit:
        raise BundleError(str(misfit), path=str(path), field=misfit.field) from misfit
    if problem := manifest.geometry.problem():
        raise BundleError(problem, path=str(path), field="geometry")
    return manifest


def _read_json(path: Path) -> dict[str, object]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as missing:
        raise BundleError("is missing: no bundle was completed here", path=str(path)) from missing
    except (OSError, ValueError, RecursionError) as broken:
        raise BundleError(f"cannot be read: {broken}", path=str(path)) from broken
    if not isinstance(document, dict):
        raise BundleError("must hold a JSON object", path=str(path))
    return document
