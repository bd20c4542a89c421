"""Where settings come from: a TOML file, then the environment, then flags; the last one wins."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, fields, replace
from pathlib import Path
from typing import Any, get_type_hints

from service.errors import InvalidSettings, SettingError
from service.runtime.settings import Settings
from service.runtime.settings_values import MalformedValueError, read_value, require_bounds

PREFIX = "OUTRIDER_"
CONFIG_VARIABLE = "OUTRIDER_CONFIG"
_READ_ELSEWHERE = frozenset({CONFIG_VARIABLE, "OUTRIDER_MODELS", "OUTRIDER_CACHE"})
"""Variables that say where files are; the build reads the last two."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: `key` is `section.name`, `kind` its type, `default` what absence means."""

    key: str
    kind: Any
    default: object
    least: float | None
    most: float | None

    @property
    def variable(self) -> str:
        """Return the environment variable that sets it."""
        return PREFIX + self.key.replace(".", "_").upper()


def known_settings() -> tuple[Setting, ...]:
    """Return every setting, in the order of the sections and their fields."""
    defaults = Settings()
    return tuple(
        _setting(section.name, entry, getattr(defaults, section.name))
        for section in fields(defaults)
        for entry in fields(getattr(defaults, section.name))
    )


def _setting(section: str, entry: Field[Any], defaults: Any) -> Setting:
    bounds = entry.metadata
    return Setting(
        key=f"{section}.{entry.name}",
        kind=get_type_hints(type(defaults))[entry.name],
        default=getattr(defaults, entry.name),
        least=bounds.get("least"),
        most=bounds.get("most"),
    )


@dataclass(frozen=True, slots=True)
class _Given:
    """A value that a source gives to a key."""

    source: str
    key: str
    value: object


def load_settings(
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
) -> Settings:
    """Layer the sources over the defaults.

    `flags` are by key, as text or as values. Without `file`, the variable
    OUTRIDER_CONFIG may name one.

    Raises:
        InvalidSettings: a file cannot be read, a setting is unknown, or a value is
            malformed or out of bounds; it names the source and the key.
    """
    environment = environment or {}
    named = environment.get(CONFIG_VARIABLE)
    path = Path(named) if file is None and named else file
    given = [
        *(_from_file(path) if path is not None else ()),
        *_from_environment(environment),
        *(_Given("flag", key, value) for key, value in (flags or {}).items()),
    ]
    return _layered(given)


def _from_file(path: Path) -> Iterator[_Given]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidSettings(str(path), f"cannot be read: {error}") from error
    for section, entries in document.items():
        if not isinstance(entries, dict):
            raise InvalidSettings(section, f"{path}: unknown setting outside a section")
        for name, value in entries.items():
            yield _Given(str(path), f"{section}.{name}", value)


def _from_environment(environment: Mapping[str, str]) -> Iterator[_Given]:
    keys = {setting.variable: setting.key for setting in known_settings()}
    for variable, value in environment.items():
        if variable.startswith(PREFIX) and variable not in _READ_ELSEWHERE:
            if variable not in keys:
                raise InvalidSettings(variable, "environment: unknown setting")
            yield _Given("environment", keys[variable], value)


def _layered(given: list[_Given]) -> Settings:
    known = {setting.key: setting for setting in known_settings()}
    sections: dict[str, dict[str, Any]] = {}
    for each in given:
        if each.key not in known:
            raise InvalidSettings(each.key, f"{each.source}: unknown setting")
        section, _, name = each.key.partition(".")
        sections.setdefault(section, {})[name] = _read(each, known[each.key])
    defaults = Settings()
    changed = {
        section: replace(getattr(defaults, section), **values)
        for section, values in sections.items()
    }
    return _checked(replace(defaults, **changed))


def _read(given: _Given, setting: Setting) -> object:
    try:
        value = read_value(given.value, setting.kind)
        require_bounds(value, setting.least, setting.most)
    except MalformedValueError as error:
        raise InvalidSettings(given.key, f"{given.source}: {error}") from error
    return value


def _checked(settings: Settings) -> Settings:
    try:
        settings.scheduler.validate()
    except SettingError as error:
        raise InvalidSettings(f"scheduler.{error.field}", str(error)) from error
    return settings
