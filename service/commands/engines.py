"""What commands ask of the engines, as functions: only `service.__main__` knows any engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from service.runtime.models import LoadedModel
from service.runtime.settings import Settings

Say = Callable[[str], None]
"""Tells people, in one line, what is going on."""

Description = Mapping[str, Mapping[str, object]]
"""Facts about a bundle, by section and name; values are what JSON has."""


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """A bundle to build; no source is the default model, no destination its own place."""

    source: Path | None
    destination: Path | None
    weights: str
    lowering: str
    force: bool = False


@dataclass(frozen=True, slots=True)
class BuildReport:
    """Where a bundle lies, and whether it was there already."""

    path: Path
    was_there: bool


@dataclass(frozen=True, slots=True)
class Engines:
    """The engines of this installation.

    Each function raises OutriderError for what it cannot do, naming the setting or the file.
    `inspect` verifies the bundle, the default one where no path is given.
    """

    load: Callable[[Settings, Say], tuple[LoadedModel, ...]]
    build: Callable[[BuildRequest], BuildReport]
    inspect: Callable[[Path | None], Description]
