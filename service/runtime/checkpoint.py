"""A checkpoint's own generation defaults, from its `generation_config.json`."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args, get_type_hints

from service.errors import BundleError, SettingError
from service.generation.config import GenerationOverrides, resolve_generation_config


def read_generation_defaults(path: Path) -> GenerationOverrides:
    """Return the settings that the file at `path` declares; what it leaves out stays open.

    Raises:
        BundleError: the file cannot be read, or a value is of a wrong type or refused.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as broken:
        raise BundleError(f"cannot be read: {broken}", path=str(path)) from broken
    if not isinstance(document, dict):
        raise BundleError("must hold a JSON object", path=str(path))
    kinds = get_type_hints(GenerationOverrides)
    declared: dict[str, Any] = {
        field.name: _checked(path, field.name, document[field.name], kinds[field.name])
        for field in fields(GenerationOverrides)
        if document.get(field.name) is not None
    }
    return _resolvable(path, GenerationOverrides(**declared))


def _checked(path: Path, name: str, value: object, kind: object) -> object:
    """Return a value of the type that its field has; an integer is a number too."""
    wanted = next(each for each in get_args(kind) if each is not type(None))
    is_number = wanted is float and type(value) is int
    if type(value) is not wanted and not is_number:
        raise BundleError(f"must be {wanted.__name__}, found {value!r}", path=str(path), field=name)
    return value


def _resolvable(path: Path, defaults: GenerationOverrides) -> GenerationOverrides:
    try:
        resolve_generation_config(defaults, GenerationOverrides())
    except SettingError as refused:
        raise BundleError(str(refused), path=str(path), field=refused.field) from refused
    return defaults
