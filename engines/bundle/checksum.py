"""File checksums that are computed once for as long as a file stays the same."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

CACHE_FILE = ".verified.json"


def sha256_file(path: Path) -> str:
    """Digest a file; hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class ChecksumCache:
    """Remembers checksums beside a bundle, keyed by size, modification time and inode.

    Reading 140 MB costs a start 0.1 s or more; a file whose three facts are
    unchanged is taken to be unchanged. A cache that cannot be read or written
    only costs time.
    """

    def __init__(self, bundle: Path) -> None:
        self._bundle = bundle
        self._known = _read_cache(bundle / CACHE_FILE)
        self._changed = False

    def sha256(self, name: str, expected: str) -> str:
        """Return a file's checksum; one that is not the expected is never taken from memory."""
        path = self._bundle / name
        facts = path.stat()
        key = f"{name}:{facts.st_size}:{facts.st_mtime_ns}:{facts.st_ino}"
        if self._known.get(key) != expected:
            self._known[key] = sha256_file(path)
            self._changed = True
        return self._known[key]

    def save(self) -> None:
        if not self._changed:
            return
        try:
            (self._bundle / CACHE_FILE).write_text(json.dumps(self._known), encoding="utf-8")
        except OSError:
            return


def _read_cache(path: Path) -> dict[str, str]:
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return known if isinstance(known, dict) else {}
