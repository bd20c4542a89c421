"""The commands of a guide for grpcurl: what they run, print, and send."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from google.protobuf.descriptor import Descriptor
from google.protobuf.json_format import ParseDict
from google.protobuf.message import Message

from outrider.v1.generation_pb2 import Generation

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(
    r"^```sh(?: exit=(?P<exit>\d+))?\n(?P<command>.*?)^```\n"
    r"(?:```(?:text|json)\n(?P<output>.*?)^```\n)?",
    re.MULTILINE | re.DOTALL,
)
DATA = re.compile(r"-d '(.*?)'|^(\{[^\n]*\})$", re.MULTILINE | re.DOTALL)
LEFT_OUT = "…"
OWN = "outrider.v1."


@dataclass(frozen=True)
class Command:
    """A command of a guide, how it ends, and lines that it prints in this order."""

    script: str
    status: int
    lines: tuple[str, ...]

    @property
    def title(self) -> str:
        return self.script.split("localhost:50051")[-1].split("\n")[0].strip()

    def is_printed_by(self, output: str) -> bool:
        """Whether each line begins a printed one, in the order given."""
        printed = iter(line.strip() for line in output.splitlines())
        return all(any(line.startswith(text) for line in printed) for text in self.lines)

    def generations(self) -> Iterator[Generation]:
        """Yield what is asked to be generated."""
        for found in DATA.finditer(self.script):
            data = json.loads(found[1] or found[2])
            for name in ("generation", "start"):
                if name in data:
                    yield ParseDict(data[name], Generation())


def commands(guide: str) -> list[Command]:
    """Return the commands of a guide of this name."""
    return [
        Command(
            script=block["command"],
            status=int(block["exit"] or 0),
            lines=tuple(
                line.strip()
                for line in (block["output"] or "").splitlines()
                if line.strip() != LEFT_OUT
            ),
        )
        for block in BLOCK.finditer((ROOT / "docs" / guide).read_text())
    ]


def parameters(descriptor: Descriptor = Generation.DESCRIPTOR, path: str = "") -> set[str]:
    """Return every parameter of a request, by its path."""
    found = set()
    for field in descriptor.fields:
        here = f"{path}{field.name}"
        found.add(here)
        if is_own(field.message_type):
            found |= parameters(field.message_type, f"{here}.")
    return found


def is_own(kind: Descriptor | None) -> bool:
    """Whether a field holds parameters of this contract rather than a value."""
    return kind is not None and kind.full_name.startswith(OWN) and not kind.GetOptions().map_entry


def sent(message: Message, path: str = "") -> set[str]:
    """Return the parameters that a message sets, by their paths."""
    found = set()
    for field, value in message.ListFields():
        here = f"{path}{field.name}"
        found.add(here)
        if is_own(field.message_type):
            for part in value if field.is_repeated else [value]:
                found |= sent(part, f"{here}.")
    return found
