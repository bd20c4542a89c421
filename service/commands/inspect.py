"""`outrider inspect`: what a bundle is, proved by its checksums, and what it costs."""

from __future__ import annotations

import json
import re
from argparse import Namespace
from collections.abc import Iterator, Mapping

from service.commands.engines import Engines

_BYTES_SECTION = "memory"
_NUMBERED = re.compile(r"(?P<name>.+_)(?P<number>\d+)$")


def inspect(arguments: Namespace, engines: Engines) -> None:
    """Verify a bundle and print its description."""
    description = engines.inspect(arguments.bundle)
    if arguments.json:
        print(json.dumps(description, indent=2))
        return
    for section, facts in description.items():
        print(section)
        shown = {name: _spelled(section, value) for name, value in facts.items()}
        for name, value in folded(shown):
            print(f"  {name:<24} {value}")


def folded(facts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield facts, those that differ in a number at the end of their name alone as one."""
    families: dict[tuple[str, str], list[int]] = {}
    for name, value in facts.items():
        match = _NUMBERED.match(name)
        if match is None:
            families[name, value] = []
        else:
            families.setdefault((match["name"], value), []).append(int(match["number"]))
    for (name, value), numbers in families.items():
        yield f"{name}{_range(numbers)}", value


def _range(numbers: list[int]) -> str:
    if len(numbers) < 2:
        return "".join(map(str, numbers))
    return f"{{{min(numbers)}..{max(numbers)}}}"


def _spelled(section: str, value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case int() if section == _BYTES_SECTION:
            return f"{value:,} bytes"
        case list():
            return ", ".join(map(str, value))
        case _:
            return str(value)
