"""TOML read key by key: every value is checked, and what nobody asked for is refused."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from service.errors import InvalidSettings

T = TypeVar("T")

_NAMES: dict[type, str] = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a string",
    dict: "a table",
    list: "a list",
}


class TomlTable:
    """One table of a file; `path` names it in errors."""

    def __init__(self, path: str, values: Mapping[str, object]) -> None:
        self.path = path
        self._values = dict(values)

    def refuse(self, key: str, description: str) -> InvalidSettings:
        """Return the error of one key, with the file and the key's whole path."""
        return InvalidSettings(f"{self.path}{key}", description)

    def take(self, key: str, kind: type[T], default: T | None = None) -> T:
        """Take a value of a kind; a key without a default is required.

        Raises:
            InvalidSettings: the key is missing, or its value is of another kind.
        """
        value = self._values.pop(key, default)
        if value is None:
            raise self.refuse(key, "is required")
        if kind is float and type(value) is int:
            value = float(value)
        if type(value) is not kind:
            raise self.refuse(key, f"must be {_NAMES[kind]}, got {value!r}")
        return value

    def optional(self, key: str, kind: type[T]) -> T | None:
        """Take a value of a kind, or None where there is no such key."""
        return self.take(key, kind) if self.has(key) else None

    def number(self, key: str, kind: type[T], default: T, least: float) -> T:
        """Take a number that is at least `least`."""
        value = self.take(key, kind, default)
        if not isinstance(value, int | float) or not value >= least:
            raise self.refuse(key, f"must be at least {least:g}, got {value}")
        return value

    def choice(self, key: str, choices: tuple[str, ...], default: str | None = None) -> str:
        """Take one of several words."""
        value = self.take(key, str, default)
        if value not in choices:
            raise self.refuse(key, f"must be one of {', '.join(choices)}, got {value!r}")
        return value

    def table(self, key: str) -> TomlTable:
        """Take a table, empty where there is no such key."""
        values: dict[str, object] = self.take(key, dict, {})
        return TomlTable(f"{self.path}{key}.", values)

    def tables(self, key: str) -> tuple[TomlTable, ...]:
        """Take a list of tables, empty where there is no such key."""
        values: list[object] = self.take(key, list, [])
        named = [(f"{key}[{index}]", value) for index, value in enumerate(values)]
        for name, value in named:
            if not isinstance(value, dict):
                raise self.refuse(name, "must be a table")
        return tuple(
            TomlTable(f"{self.path}{name}.", value)
            for name, value in named
            if isinstance(value, dict)
        )

    def has(self, key: str) -> bool:
        """Whether a key is there and nobody has taken it."""
        return key in self._values

    def untaken(self) -> tuple[str, ...]:
        """Return the keys that nobody has taken."""
        return tuple(self._values)

    def finish(self) -> None:
        """Refuse the keys that nobody has taken."""
        for key in self.untaken():
            raise self.refuse(key, "is not a known key")


def read_toml(path: Path) -> TomlTable:
    """Read a file.

    Raises:
        InvalidSettings: it cannot be read, or is no TOML.
    """
    try:
        values = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidSettings(str(path), str(error)) from error
    return TomlTable(f"{path}: ", values)
