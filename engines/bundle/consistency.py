"""Whether the parts of a manifest agree: token ids, sizes, graph and file names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from engines.bundle.geometry import Geometry
from engines.bundle.manifest import MANIFEST_FILE, Manifest, SpecialTokens, Tensor
from service.errors import BundleError

Problem = tuple[str, str]
"""A field of the manifest, and what is wrong with it."""


def require_consistent(bundle: Path, manifest: Manifest) -> None:
    """Prove that no part of a manifest contradicts another.

    Raises BundleError, naming the field, for the first that does.
    """
    for field, problem in _problems(manifest):
        raise BundleError(problem, path=str(bundle / MANIFEST_FILE), field=field)


def _problems(manifest: Manifest) -> Iterator[Problem]:
    for name in manifest.files:
        if name in {"", ".", ".."} or "/" in name or "\0" in name:
            yield f"files.{name}", "is not the name of a file in the bundle"
    if not re.fullmatch("[0-9a-f]{64}", manifest.tokenizer_fingerprint):
        yield "tokenizer_fingerprint", "must be 32 bytes in hexadecimal"
    yield from _token_problems(manifest.tokens, manifest.geometry.vocabulary)
    yield from _cache_problems(manifest.geometry, "past", manifest.graph.inputs)
    yield from _cache_problems(manifest.geometry, "present", manifest.graph.outputs)
    yield from _logits_problems(manifest.geometry, manifest.graph.outputs)


def _token_problems(tokens: SpecialTokens, vocabulary: int) -> Iterator[Problem]:
    named = {"bos": tokens.bos, "pad": tokens.pad, "unknown": tokens.unknown}
    ends = {f"eos[{index}]": token for index, token in enumerate(tokens.eos)}
    for name, token in (named | ends).items():
        if token is not None and not 0 <= token < vocabulary:
            yield f"tokens.{name}", f"{token} is not within a vocabulary of {vocabulary}"


def _cache_problems(
    geometry: Geometry, prefix: str, tensors: Mapping[str, Tensor]
) -> Iterator[Problem]:
    """Compare the caches of a graph, `[B, kv heads, T, head width]`, with the geometry."""
    caches = {name: each for name, each in tensors.items() if name.startswith(f"{prefix}_")}
    if len(caches) != 2 * geometry.layers:
        message = f"{geometry.layers} layers have {2 * geometry.layers} caches"
        yield "geometry.layers", f"{message}, the graph has {len(caches)} of {prefix}_*"
        return
    for layer in range(geometry.layers):
        for name in (f"{prefix}_key_{layer}", f"{prefix}_value_{layer}"):
            if name not in caches:
                yield "geometry.layers", f"the graph has no {name}"
                return
            yield from _shape_problems(geometry, name, caches[name].shape)


def _shape_problems(geometry: Geometry, name: str, shape: tuple[str, ...]) -> Iterator[Problem]:
    if len(shape) != 4:
        yield "geometry", f"{name} has {len(shape)} dimensions in the graph, not 4"
        return
    for field, wanted, found in (
        ("kv_heads", geometry.kv_heads, shape[1]),
        ("head_width", geometry.head_width, shape[3]),
    ):
        if str(wanted) != found:
            yield f"geometry.{field}", f"is {wanted}, {name} of the graph has {found}"


def _logits_problems(geometry: Geometry, outputs: Mapping[str, Tensor]) -> Iterator[Problem]:
    logits = outputs.get("logits")
    if logits is None:
        yield "graph.outputs", "has no logits"
    elif logits.shape[1:] != (str(geometry.vocabulary),):
        found = ", ".join(logits.shape)
        message = f"is {geometry.vocabulary}, the graph has logits [{found}]"
        yield "geometry.vocabulary", message
