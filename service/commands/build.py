"""`outrider build`: a model bundle from a GGUF file, or the default model's."""

from __future__ import annotations

import json
import time
from argparse import Namespace

from service.commands.engines import BuildRequest, Engines
from service.errors import InvalidSettings


def build(arguments: Namespace, engines: Engines) -> None:
    """Build a bundle, unless it is there, and say where it lies."""
    if arguments.source is not None and arguments.output is None:
        raise InvalidSettings("--output", "is needed with --source: where the bundle is to lie")
    request = BuildRequest(
        source=arguments.source,
        destination=arguments.output,
        weights=arguments.weights,
        lowering=arguments.lowering,
        force=arguments.force,
    )
    started = time.monotonic()
    report = engines.build(request)
    if arguments.json:
        print(json.dumps({"path": str(report.path), "was_there": report.was_there}))
    elif report.was_there:
        print(f"{report.path} is there already, and whole")
    else:
        print(f"{report.path} was built in {time.monotonic() - started:.0f} s")
