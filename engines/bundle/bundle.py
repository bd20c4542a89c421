"""A verified bundle: the only way from a directory to the files of a model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from engines.bundle.checksum import ChecksumCache, sha256_file
from engines.bundle.consistency import require_consistent
from engines.bundle.fingerprint import tokenizer_fingerprint
from engines.bundle.manifest import (
    CHAT_TEMPLATE_FILE,
    GENERATION_FILE,
    TOKENIZER_FILE,
    FileEntry,
    Manifest,
    read_manifest,
)
from service.errors import BundleError


@dataclass(frozen=True, slots=True)
class Bundle:
    """A model on disk whose files are what its manifest says."""

    path: Path
    manifest: Manifest

    @property
    def graph_path(self) -> Path:
        return self.path / self.manifest.graph.file

    @property
    def tokenizer_path(self) -> Path:
        return self.path / TOKENIZER_FILE

    @property
    def generation_config_path(self) -> Path:
        return self.path / GENERATION_FILE

    @property
    def fingerprint(self) -> bytes:
        return bytes.fromhex(self.manifest.tokenizer_fingerprint)

    def chat_template(self) -> str | None:
        """Read the Jinja chat template, or nothing where the model has none.

        Raises BundleError when it cannot be read, or is not UTF-8.
        """
        if not self.manifest.has_chat_template:
            return None
        path = self.path / CHAT_TEMPLATE_FILE
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, ValueError) as broken:
            raise BundleError(f"cannot be read: {broken}", path=str(path)) from broken


def load_bundle(path: Path, *, fresh: bool = False) -> Bundle:
    """Open the bundle at `path` after proving that it is whole.

    Sizes are always compared; checksums are computed once and remembered for as
    long as size, modification time and inode stay the same. `fresh` reads every
    byte again, for `inspect` and after a suspected disk fault.

    Raises BundleError, naming file and field, for whatever is missing, damaged or foreign.
    """
    manifest = read_manifest(path)
    require_consistent(path, manifest)
    cache = ChecksumCache(path)
    for name, entry in manifest.files.items():
        try:
            _check_file(path / name, entry)
            found = sha256_file(path / name) if fresh else cache.sha256(name, entry.sha256)
        except OSError as failed:
            raise BundleError(f"cannot be read: {failed}", path=str(path / name)) from failed
        if found != entry.sha256:
            raise BundleError("checksum differs from the manifest", path=str(path / name))
    cache.save()
    bundle = Bundle(path, manifest)
    _check_parts(bundle)
    bundle.chat_template()
    check_tokenizer(bundle)
    return bundle


def _check_file(path: Path, entry: FileEntry) -> None:
    if not path.is_file():
        raise BundleError("is missing from the bundle", path=str(path))
    size = path.stat().st_size
    if size != entry.bytes:
        raise BundleError(f"has {size} bytes, the manifest says {entry.bytes}", path=str(path))


def _check_parts(bundle: Bundle) -> None:
    manifest = bundle.manifest
    needed = [manifest.graph.file, TOKENIZER_FILE, GENERATION_FILE]
    if manifest.has_chat_template:
        needed.append(CHAT_TEMPLATE_FILE)
    for name in needed:
        if name not in manifest.files:
            raise BundleError("is not listed", path=str(bundle.path / name), field="files")


def check_tokenizer(bundle: Bundle) -> None:
    """Prove that `tokenizer.json` has the vocabulary that the manifest's fingerprint names.

    It may be smaller than the embedding, whose last rows are padding then.
    """
    path = str(bundle.tokenizer_path)
    try:
        model = json.loads(bundle.tokenizer_path.read_text(encoding="utf-8"))["model"]
        ids: dict[str, int] = model["vocab"]
        merges = [(left, right) for left, right in model["merges"]]
        vocabulary = sorted(ids, key=ids.__getitem__)
        found = tokenizer_fingerprint(vocabulary, merges)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as broken:
        raise BundleError(f"is not a BPE tokenizer: {broken!r}", path=path) from broken
    rows = bundle.manifest.geometry.vocabulary
    if len(vocabulary) > rows:
        message = f"has {len(vocabulary)} tokens, geometry.vocabulary of the manifest says {rows}"
        raise BundleError(message, path=path, field="model.vocab")
    if found != bundle.fingerprint:
        field = "tokenizer_fingerprint"
        raise BundleError("vocabulary or merges differ from the manifest", path=path, field=field)
