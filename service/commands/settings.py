"""The settings of a command: its file, its environment and its flags, layered."""

from __future__ import annotations

import os
from argparse import Namespace

from service.errors import InvalidSettings
from service.runtime.settings import Settings
from service.runtime.settings_sources import load_settings


def read_settings(arguments: Namespace) -> Settings:
    """Return the settings of file, environment and flags.

    Raises:
        InvalidSettings: one is unknown, malformed, or not served by this version.
    """
    settings = load_settings(arguments.config, os.environ, settings_flags(arguments))
    if settings.metrics.port is not None:
        raise InvalidSettings("metrics.port", "metrics are not part of this version")
    return settings


def settings_flags(arguments: Namespace) -> dict[str, object]:
    """Return the settings that flags give, by key.

    Raises:
        InvalidSettings: `--set` is not KEY=VALUE.
    """
    flags = {
        key: value for key, value in vars(arguments).items() if "." in key and value is not None
    }
    for pair in arguments.set:
        key, equals, value = pair.partition("=")
        if not equals:
            raise InvalidSettings(key, "flag: --set takes KEY=VALUE")
        flags[key] = value
    return flags
