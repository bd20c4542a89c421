"""Run one command: its exit status, and one line for whatever keeps it from working."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence

import outrider
from service.commands.arguments import USAGE_EXIT, parse
from service.commands.build import build
from service.commands.engines import Engines
from service.commands.generate import generate
from service.commands.inspect import inspect
from service.commands.serve import serve
from service.errors import InvalidSettings, OutriderError, SettingError

FAILURE_EXIT = 1
INTERRUPTED_EXIT = 130

_COMMANDS: Mapping[str, Callable[[Namespace, Engines], None]] = {
    "serve": serve,
    "generate": generate,
    "build": build,
    "inspect": inspect,
}


def run(argv: Sequence[str], engines: Engines) -> int:
    """Run the command that the arguments name.

    Returns 0; 2 where the arguments or settings are refused, 1 where the
    command failed, both after one line on standard error; 130 after Ctrl-C.
    """
    arguments = parse(argv)
    try:
        _COMMANDS[arguments.command](arguments, engines)
    except (InvalidSettings, SettingError, outrider.InvalidRequest) as refused:
        return _complain(refused, USAGE_EXIT)
    except (OutriderError, outrider.OutriderError, OSError) as failed:
        return _complain(failed, FAILURE_EXIT)
    except KeyboardInterrupt:
        return INTERRUPTED_EXIT
    return 0


def _complain(error: Exception, status: int) -> int:
    print("outrider:", " ".join(str(error).split()), file=sys.stderr)
    return status
