"""Run one command: its exit status, and one line for whatever keeps it from working."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from io import TextIOWrapper

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
UNREAD_EXIT = 141

_STANDARD_ERROR = 2

_COMMANDS: Mapping[str, Callable[[Namespace, Engines], None]] = {
    "serve": serve,
    "generate": generate,
    "build": build,
    "inspect": inspect,
}


def run(argv: Sequence[str], engines: Engines) -> int:
    """Run the command that the arguments name.

    Returns 0; 2 where the arguments or settings are refused, 1 where the
    command failed, both after one line on standard error; 130 after Ctrl-C, and
    141 where nobody reads its output any more, as a shell reports those signals.
    """
    _open_standard_descriptors()
    _spell_what_has_no_code()
    try:
        try:
            return _run(argv, engines)
        finally:
            print(end="", flush=True)
    except BrokenPipeError:
        _discard_output()
        return UNREAD_EXIT


def _run(argv: Sequence[str], engines: Engines) -> int:
    arguments = parse(argv)
    try:
        _COMMANDS[arguments.command](arguments, engines)
    except BrokenPipeError:
        raise
    except (InvalidSettings, SettingError, outrider.InvalidRequest) as refused:
        return _complain(refused, USAGE_EXIT)
    except (OutriderError, outrider.OutriderError, OSError) as failed:
        return _complain(failed, FAILURE_EXIT)
    except KeyboardInterrupt:
        return INTERRUPTED_EXIT
    return 0


def _open_standard_descriptors() -> None:
    """Fill the standard descriptors that were closed, or sockets would take their numbers."""
    while (opened := os.open(os.devnull, os.O_RDWR)) <= _STANDARD_ERROR:
        pass
    os.close(opened)


def _spell_what_has_no_code() -> None:
    """Write a character that the terminal's encoding lacks as an escape, rather than fail."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Send what is left in the buffer nowhere, or Python would fail on it once more at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _complain(error: Exception, status: int) -> int:
    print("outrider:", " ".join(str(error).split()), file=sys.stderr)
    return status
