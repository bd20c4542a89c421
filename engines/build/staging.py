"""Directories that appear whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def staged_directory(destination: Path) -> Iterator[Path]:
    """Give a temporary sibling that replaces `destination` when the block ends well.

    Every file is flushed to disk before the rename, so not even a power failure
    leaves a directory that looks complete and is not. After an error the
    temporary directory is removed and `destination` is untouched.
    """
    destination.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{destination.name}.", dir=destination.parent))
    try:
        yield staging
        for path in staging.iterdir():
            _flush(path)
        _flush(staging)
        staging.chmod(0o755)
        _swap(staging, destination)
        _flush(destination.parent)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _swap(staging: Path, destination: Path) -> None:
    """Rename into place; an older directory is moved aside first, then removed."""
    if not destination.exists():
        staging.rename(destination)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{destination.name}.old.", dir=destination.parent))
    destination.rename(aside / "replaced")
    staging.rename(destination)
    shutil.rmtree(aside)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
