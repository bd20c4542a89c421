"""`outrider serve`: load models, listen, and say how to reach them."""

from __future__ import annotations

import json
import logging
import sys
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace

from service.commands.engines import Engines
from service.commands.settings import read_settings
from service.rpc.options import ServerOptions
from service.rpc.serve import run
from service.rpc.serve import serve as serve_until_signal
from service.runtime.models import LoadedModel, ModelRegistry
from service.runtime.runtime import Runtime
from service.runtime.settings import ServerSettings


def serve(arguments: Namespace, engines: Engines) -> None:
    """Serve until SIGTERM or SIGINT."""
    settings = read_settings(arguments)
    logging.basicConfig(
        level=settings.server.log_level.value.upper(),
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        stream=sys.stderr,
    )
    models = engines.load(settings, _say)
    options = server_options(settings.server)

    def ready(port: int) -> None:
        address = replace(options, port=port).address
        report = _ready_json(address, models) if arguments.json else ready_text(address, models)
        print(report, flush=True)

    run(serve_until_signal(Runtime(ModelRegistry(models), settings.runtime), options, ready))


def server_options(settings: ServerSettings) -> ServerOptions:
    """Return how the gRPC server is to listen."""
    return ServerOptions(
        host=settings.host,
        port=settings.port,
        max_message_bytes=settings.max_message_bytes,
        drain_grace_seconds=settings.drain_seconds,
    )


def ready_text(address: str, models: Sequence[LoadedModel]) -> str:
    """Return what to say once requests are taken: what is served, and calls to try."""
    service = "outrider.v1.GenerationService"
    call = f"grpcurl -plaintext -d '%s' {address} {service}/%s"
    story = '{"generation": {"text": "Once upon a time", "settings": {"max_new_tokens": 48}}}'
    turn = '{"role": "user", "content": "Name three rivers."}'
    chat = f'{{"generation": {{"chat": {{"messages": [{turn}]}}}}}}'
    start = '{"request_id": "%s", "start": {"text": "%s", "settings": {"max_new_tokens": 24}}}'
    lines = (
        *(_described(model) for model in models),
        f"listening on {address}; Ctrl-C drains and stops. Try:",
        "",
        f"grpcurl -plaintext {address} list",
        f"grpcurl -plaintext {address} describe {service}",
        call % (story, "Complete"),
        call % (chat, "StreamGenerate"),
        f"grpcurl -plaintext -d @ {address} {service}/Generate <<'END'",
        start % ("a", "Once upon a time"),
        start % ("b", "The sea is"),
        "END",
    )
    return "\n".join(lines)


def _described(model: LoadedModel) -> str:
    limits, about = model.target.limits, model.information
    proposers = ", ".join(proposer.name for proposer in model.proposers) or "none"
    return (
        f"{model.name}: engine {about.engine}, {limits.max_slots} slots of {limits.max_context} "
        f"tokens, proposers {proposers}"
    )


def _ready_json(address: str, models: Sequence[LoadedModel]) -> str:
    return json.dumps({"address": address, "models": [model.name for model in models]})


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
