"""The command line's grammar: flags that are settings, and flags of one command."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import NoReturn

from outrider.calls import MAX_TIMEOUT_SECONDS
from service.runtime.request import SpeculationMode
from service.runtime.settings_sources import known_settings

USAGE_EXIT = 2


@dataclass(frozen=True, slots=True)
class _Shorthand:
    """A flag that is one setting."""

    flag: str
    key: str
    metavar: str
    help: str


_LISTENING = (
    _Shorthand("--host", "server.host", "HOST", "address to listen on"),
    _Shorthand("--port", "server.port", "PORT", "port to listen on; 0 takes a free one"),
)
_LOADING = (
    _Shorthand("--engine", "model.engine", "KIND", "auto, onnx or scripted"),
    _Shorthand("--draft", "model.draft_bundle", "DIR", "bundle that drafts for the first model"),
    _Shorthand("--slots", "model.max_slots", "N", "requests decoded at once"),
    _Shorthand("--context", "model.max_context", "N", "most tokens of a prompt and its output"),
    _Shorthand("--threads", "model.threads", "N", "compute threads"),
    _Shorthand("--log-level", "server.log_level", "LEVEL", "debug, info, warning or error"),
)


class _Parser(ArgumentParser):
    """Reports a mistake in one line."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message} (see {self.prog} --help)", file=sys.stderr)
        raise SystemExit(USAGE_EXIT)


def parse(argv: Sequence[str]) -> Namespace:
    """Return the arguments; `command` names the command.

    Raises:
        SystemExit: with 2 after a mistake, which was reported, and with 0 after help.
    """
    parser = _Parser(prog="outrider", description="Serve a language model, speculatively.")
    parser.add_argument("--version", action="version", version=metadata.version("outrider"))
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, description, add in (
        ("serve", "Serve models over gRPC.", _add_serve),
        ("generate", "Stream one answer.", _add_generate),
        ("build", "Build a model bundle.", _add_build),
        ("inspect", "Verify and describe a bundle.", _add_inspect),
    ):
        add(commands.add_parser(name, help=description, description=description))
    return parser.parse_args(argv)


def _settings_help() -> str:
    """List every setting with the variable that sets it and its default."""
    known = known_settings()
    width = max(len(setting.key) for setting in known)
    lines = [
        f"  {setting.key:<{width}}  {_spelled(setting.default)}  ({setting.variable})"
        for setting in known
    ]
    return "settings, for --set, a --config file in TOML, and the environment:\n" + "\n".join(lines)


def _spelled(default: object) -> str:
    value = getattr(default, "value", default)
    if value in (None, ()):
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _add_shorthands(parser: ArgumentParser, shorthands: Sequence[_Shorthand]) -> None:
    for each in shorthands:
        parser.add_argument(each.flag, dest=each.key, metavar=each.metavar, help=each.help)


def _add_settings(parser: ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings in TOML")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="any setting, by its key"
    )
    parser.add_argument(
        "--bundle",
        dest="model.bundles",
        action="append",
        metavar="[NAME=]DIR",
        help="model to load, repeatable; the first is the default one",
    )
    _add_shorthands(parser, _LOADING)


def _add_serve(parser: ArgumentParser) -> None:
    parser.formatter_class = RawDescriptionHelpFormatter
    parser.epilog = _settings_help()
    _add_settings(parser)
    _add_shorthands(parser, _LISTENING)
    parser.add_argument(
        "--json", action="store_true", help="say where it listens in one line of JSON"
    )


def _add_generate(parser: ArgumentParser) -> None:
    parser.add_argument("prompt", help="what to ask, or - to read it from standard input")
    parser.add_argument("--raw", action="store_true", help="continue the prompt: no chat template")
    parser.add_argument("--system", metavar="TEXT", help="system message")
    parser.add_argument(
        "--target",
        metavar="HOST:PORT",
        help="server to ask; without one, a server is started for this answer",
    )
    parser.add_argument("--name", default="", metavar="MODEL", help="model, as the server names it")
    _add_generation(parser)
    parser.add_argument("--stats", action="store_true", help="show what speculation did")
    parser.add_argument("--json", action="store_true", help="print the whole answer as JSON")
    parser.epilog = "without --target, the flags of `outrider serve` say what to load"
    _add_settings(parser)


def _seconds(text: str) -> float:
    """Read a time; the client's bounds hold here, so that a mistake names its flag."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds <= MAX_TIMEOUT_SECONDS:
        raise ArgumentTypeError(f"must be 0 to {MAX_TIMEOUT_SECONDS:.0f} seconds, got {text!r}")
    return seconds


def _add_generation(parser: ArgumentParser) -> None:
    for flag, kind, text in (
        ("--max-tokens", int, "most tokens to generate"),
        ("--min-tokens", int, "no end and no stop before this many tokens"),
        ("--temperature", float, "0 is greedy"),
        ("--top-k", int, "keep the k likeliest tokens"),
        ("--top-p", float, "keep the likeliest tokens up to this share"),
        ("--min-p", float, "keep tokens with this share of the likeliest one's probability"),
        ("--repetition-penalty", float, "above 1 discourages repetition"),
        ("--seed", int, "makes sampling repeatable"),
        ("--timeout", _seconds, "seconds until the request is given up"),
        ("--width", int, "most tokens proposed in a round"),
        ("--logprobs", int, "show each token's log-probability, with N of the likeliest"),
    ):
        parser.add_argument(flag, type=kind, metavar="N", help=text)
    parser.add_argument(
        "--stop", action="append", default=[], metavar="TEXT", help="end before this text"
    )
    _add_constraints(parser)
    modes = [mode.value for mode in SpeculationMode]
    parser.add_argument(
        "--speculation", choices=modes, metavar="MODE", help=f"one of {', '.join(modes)}"
    )


def _add_constraints(parser: ArgumentParser) -> None:
    languages = parser.add_mutually_exclusive_group()
    languages.add_argument(
        "--json-schema",
        metavar="SCHEMA",
        help="answer in JSON of this schema, a file or {…}",
    )
    languages.add_argument("--regex", metavar="REGEX", help="answer with a text that matches whole")
    languages.add_argument(
        "--choice", action="append", metavar="TEXT", help="answer with one of these; repeatable"
    )


def _add_build(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--source", type=Path, metavar="GGUF", help="model file; without one, the default model"
    )
    parser.add_argument("--output", type=Path, metavar="DIR", help="where the bundle is to lie")
    parser.add_argument("--weights", choices=("w8", "f32"), default="w8", help="default: w8")
    parser.add_argument("--lowering", choices=("tsman", "ts"), default="tsman", help="of attention")
    parser.add_argument("--force", action="store_true", help="build even if it is there")
    parser.add_argument("--json", action="store_true", help="say where it lies as JSON")


def _add_inspect(parser: ArgumentParser) -> None:
    parser.add_argument("bundle", type=Path, nargs="?", help="default: the default model's bundle")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
