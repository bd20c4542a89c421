"""Where and with what a measurement was made."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("onnxruntime", "numpy", "grpcio", "protobuf", "tokenizers")


def circumstances() -> dict[str, object]:
    """Return processor, cores, memory, load, versions, commit and the time now."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(_memory_bytes() / 2**30, 1),
        "load_before": round(os.getloadavg()[0], 2),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "commit": _commit(),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _commit() -> str:
    """Return the commit, marked where the tree differs from it; empty outside a repository."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    found = subprocess.run(  # noqa: S603 - a fixed command
        command, cwd=ROOT, capture_output=True, text=True, check=False
    )
    return found.stdout.strip()
