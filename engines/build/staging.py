"""Directories that appear whole or not at all, and never at the cost of a foreign one."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from engines.bundle.checksum import CACHE_FILE
from engines.bundle.manifest import COST_FILE, MANIFEST_FILE
from service.errors import BundleError

_MARK = "outrider-build"
_OWN_FILES = frozenset({MANIFEST_FILE, CACHE_FILE, COST_FILE, f"{COST_FILE}.partial"})


@contextmanager
def staged_directory(destination: Path) -> Iterator[Path]:
    """Give a temporary sibling that replaces `destination` when the block ends well.

    Every file is flushed to disk before the rename, so not even a power failure
    leaves a directory that looks complete and is not. After an error the
    temporary directory is removed and `destination` is untouched. Siblings that
    a killed process left are removed after a good end.

    Raises BundleError where `require_replaceable` does, before the block as well
    as after it, and where `destination` cannot be written.
    """
    require_replaceable(destination)
    staging, held = _held_sibling(destination)
    try:
        yield staging
        for path in staging.iterdir():
            _flush(path)
        _flush(staging)
        staging.chmod(0o755)
        with _locked(destination.parent):
            require_replaceable(destination)
            _swap(staging, destination)
            _remove_stale(destination)
        _flush(destination.parent)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        os.close(held)


def require_replaceable(destination: Path) -> None:
    """Prove that nothing but a bundle is lost where `destination` is replaced.

    An absent path, an empty directory and a bundle, damaged or not, may be
    replaced. Raises BundleError, naming the path, for anything else.
    """
    where = str(destination)
    if destination.name in {"", ".."}:
        raise BundleError("names no directory of its own", path=where)
    if destination.is_symlink():
        raise BundleError("is a symbolic link and is not replaced", path=where)
    if not destination.exists():
        return
    if not destination.is_dir():
        raise BundleError("is not a directory and is not replaced", path=where)
    if foreign := _foreign_entry(destination):
        message = f"holds {foreign}, which is no part of a bundle, and is not replaced"
        raise BundleError(message, path=where)


def _foreign_entry(directory: Path) -> str | None:
    """Name something in `directory` that its manifest does not account for."""
    own = _OWN_FILES | _listed_files(directory / MANIFEST_FILE)
    for path in sorted(directory.iterdir()):
        if path.name not in own or path.is_symlink() or not path.is_file():
            return path.name
    return None


def _listed_files(manifest: Path) -> frozenset[str]:
    """Read the names in a manifest of any version; none where it is not ours."""
    try:
        document = json.loads(manifest.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return frozenset()
    ours = isinstance(document, dict) and {"format_version", "files"} <= document.keys()
    files = document["files"] if ours else None
    return frozenset(files) if isinstance(files, dict) else frozenset()


def _held_sibling(destination: Path) -> tuple[Path, int]:
    """Make a sibling and lock it; the lock ends with this process, however that ends."""
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        with _locked(destination.parent):
            staging = _sibling(destination)
            held = os.open(staging, os.O_RDONLY)
            _lock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as failed:
        raise BundleError(f"cannot be written: {failed}", path=str(destination)) from failed
    return staging, held


def _sibling(destination: Path) -> Path:
    prefix = f".{destination.name}.{_MARK}."
    return Path(tempfile.mkdtemp(prefix=prefix, dir=destination.parent))


def _swap(staging: Path, destination: Path) -> None:
    """Rename into place; an older directory is moved aside first, then removed."""
    if not destination.exists():
        staging.rename(destination)
        return
    aside = _sibling(destination)
    destination.rename(aside / "replaced")
    staging.rename(destination)
    shutil.rmtree(aside)


def _remove_stale(destination: Path) -> None:
    """Remove siblings of the same name that no live process holds."""
    pattern = re.compile(rf"\.{re.escape(destination.name)}\.{_MARK}\.[a-z0-9_]+")
    for path in list(destination.parent.iterdir()):
        if pattern.fullmatch(path.name) and not path.is_symlink() and path.is_dir():
            handle = os.open(path, os.O_RDONLY)
            if _lock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB):
                shutil.rmtree(path, ignore_errors=True)
            os.close(handle)


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Keep other builds from making, swapping or removing directories here."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        _lock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, mode: int) -> bool:
    """Lock an open directory; some network file systems cannot, and then nothing is stale."""
    with suppress(OSError):
        fcntl.flock(handle, mode)
        return True
    return False


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
