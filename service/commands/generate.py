"""`outrider generate`: stream one answer from a server, or from one started for it."""

from __future__ import annotations

import json
import logging
import sys
import time
from argparse import Namespace
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

from outrider import (
    AsyncClient,
    AsyncStream,
    Chat,
    Event,
    Message,
    Options,
    Prompt,
    ReasoningDelta,
)
from service.commands.engines import Engines
from service.commands.settings import read_settings
from service.commands.transcript import Transcript, facts, scored_ids, scores, summary
from service.errors import InvalidSettings
from service.rpc.options import ServerOptions
from service.rpc.serve import run
from service.rpc.server import Server
from service.runtime.models import LoadedModel, ModelRegistry
from service.runtime.runtime import Runtime
from service.runtime.settings import RuntimeOptions


def generate(arguments: Namespace, engines: Engines) -> None:
    """Stream one answer to standard output.

    Raises:
        InvalidSettings: a value does not fit its field, or a setting is refused.
        outrider.OutriderError: the server refused the request, or could not be reached.
    """
    prompt = _prompt(arguments)
    if arguments.target is not None:
        run(_ask(arguments.target, prompt, arguments))
    else:
        settings = read_settings(arguments)
        logging.basicConfig(level=logging.ERROR)
        models = engines.load(settings, _say)
        run(_ask_own_server(models, settings.runtime, prompt, arguments))


def _prompt(arguments: Namespace) -> Prompt:
    text = _standard_input() if arguments.prompt == "-" else arguments.prompt
    if arguments.raw:
        return cast("str", text)
    system = [] if arguments.system is None else [Message("system", arguments.system)]
    return Chat([*system, Message("user", text)])


def _standard_input() -> str:
    # Python has no such stream where the process was started with it closed.
    if cast("object", sys.stdin) is None:
        raise InvalidSettings("prompt -", "standard input is closed")
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as undecodable:
        raise InvalidSettings("prompt -", f"standard input: {undecodable}") from undecodable


def _options(arguments: Namespace) -> Options:
    """Return what flags ask for; an absent one leaves the choice to the server."""
    given = {
        "model": arguments.name,
        "max_new_tokens": arguments.max_tokens,
        "min_new_tokens": arguments.min_tokens,
        "temperature": arguments.temperature,
        "top_k": arguments.top_k,
        "top_p": arguments.top_p,
        "min_p": arguments.min_p,
        "repetition_penalty": arguments.repetition_penalty,
        "seed": arguments.seed,
        "timeout": arguments.timeout,
        "stop": arguments.stop or None,
        "json_schema": _schema(arguments.json_schema),
        "regex": arguments.regex,
        "choice": arguments.choice,
        "logprobs": arguments.logprobs,
        "speculation": arguments.speculation,
        "num_speculative_tokens": arguments.width,
    }
    return cast("Options", {name: value for name, value in given.items() if value is not None})


def _schema(given: str | None) -> str | None:
    """Return a schema, read from its file unless it is there itself."""
    if given is None or given.lstrip().startswith("{"):
        return given
    try:
        return Path(given).read_text(encoding="utf-8")
    except (OSError, ValueError) as unreadable:
        raise InvalidSettings("--json-schema", f"{given}: {unreadable}") from unreadable


async def _ask_own_server(
    models: tuple[LoadedModel, ...], options: RuntimeOptions, prompt: Prompt, arguments: Namespace
) -> None:
    async with _own_server(Runtime(ModelRegistry(models), options)) as address:
        await _ask(address, prompt, arguments)


@asynccontextmanager
async def _own_server(runtime: Runtime) -> AsyncIterator[str]:
    """Serve on a free loopback port for as long as the block runs."""
    options = ServerOptions(port=0)
    server = Server(runtime, options)
    port = await server.start()
    try:
        yield replace(options, port=port).address
    finally:
        await server.drain(0.0)


async def _ask(address: str, prompt: Prompt, arguments: Namespace) -> None:
    transcript = Transcript(time.monotonic())
    async with AsyncClient(address) as client:
        async with _started(client, prompt, _options(arguments)) as stream:
            async for event in stream:
                text = transcript.take(event, time.monotonic())
                if not arguments.json:
                    _show(text, event)
        if arguments.json:
            print(json.dumps(facts(transcript)))
        else:
            _report(transcript, await _texts(client, transcript), arguments)


async def _texts(client: AsyncClient, transcript: Transcript) -> dict[int, str]:
    """Return the text of each token that a score is shown of."""
    model = "" if transcript.admitted is None else transcript.admitted.model
    return {
        token: await client.detokenize([token], model=model, skip_special_tokens=False)
        for token in scored_ids(transcript)
    }


def _show(text: str, event: Event) -> None:
    """Print the text that an event brought; reasoning goes beside it, to standard error."""
    if text:
        print(text, end="", flush=True)
    elif isinstance(event, ReasoningDelta):
        print(event.text, end="", file=sys.stderr, flush=True)


def _started(client: AsyncClient, prompt: Prompt, options: Options) -> AsyncStream:
    try:
        return client.stream(prompt, **options)
    except ValueError as misfit:
        raise InvalidSettings("in the flags", str(misfit)) from misfit


def _report(transcript: Transcript, texts: Mapping[int, str], arguments: Namespace) -> None:
    print()
    if texts:
        print()
        for line in scores(transcript, texts):
            print(line)
    if arguments.stats:
        print()
        for name, value in summary(transcript):
            print(f"{name:<18} {value}")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
