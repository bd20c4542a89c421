"""Prompts and options as request messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, cast

from outrider.chats import Chat, Message, chat_message
from outrider.options import ChatOptions, Dry, Options, Prompt
from outrider.v1 import generation_pb2, settings_pb2
from outrider.values import json_text, naming, option, several, text, value_of

_OF_CALL = frozenset({"request_id", "timeout"})
_OF_GENERATION = frozenset({"model", "priority", "component_timings"})
_OF_SPECULATION = frozenset({"speculation", "proposer", "num_speculative_tokens", "lookahead"})
_LANGUAGES = ("json", "json_schema", "regex", "lark", "choice")
_OF_CHAT = frozenset(field.name for field in fields(Chat)) - {"messages"}

Wire = generation_pb2.Generation


def generation_message(prompt: Prompt, options: Options) -> Wire:
    """Return what to generate; an option that is None is absent.

    Raises:
        TypeError: an option does not exist, or has another type.
        ValueError: a value does not fit its field, or two options exclude each other.
    """
    _require_known(options)
    given = _given(options)
    _require_one_language(given)
    message = _prompt_message(prompt)
    message.settings.SetInParent()
    message.speculation.SetInParent()
    for name, value in given.items():
        with naming(option(name, value)):
            message.MergeFrom(_option_message(name, value))
    return message


def conversation(
    messages: Sequence[Message | Mapping[str, Any]], options: ChatOptions
) -> tuple[Chat, Options]:
    """Return a conversation and what remains of its options."""
    given = _given(options)
    of_chat = {name: value for name, value in given.items() if name in _OF_CHAT}
    others = {name: value for name, value in given.items() if name not in _OF_CHAT}
    return Chat(messages, **of_chat), cast("Options", others)


def _given(options: Options) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _require_known(options: Options) -> None:
    unknown = sorted(options.keys() - Options.__annotations__.keys())
    if unknown:
        raise TypeError(f"unknown options: {', '.join(unknown)}")


def _require_one_language(given: Mapping[str, Any]) -> None:
    asked = [name for name in _LANGUAGES if given.get(name, False) is not False]
    if len(asked) > 1:
        raise ValueError(f"{' and '.join(asked)} exclude each other")


def _prompt_message(prompt: Prompt) -> Wire:
    if isinstance(prompt, Chat):
        return Wire(chat=chat_message(prompt))
    with naming(option("prompt", prompt)):
        if isinstance(prompt, str):
            return Wire(text=prompt)
        return Wire(token_ids=generation_pb2.TokenIds(ids=several(prompt)))


def _option_message(name: str, value: Any) -> Wire:
    """Return a request that says one option alone."""
    if name in _OF_CALL or (name, value) == ("json", False):
        return Wire()
    written = _WRITE[name](value) if name in _WRITE else value
    if name in _OF_GENERATION:
        return Wire(**{name: written})
    if name in _OF_SPECULATION:
        own = {_RENAMED.get(name, name): written}
        return Wire(speculation=settings_pb2.SpeculationSettings(**own))
    if name in _LANGUAGES:
        own = {"constraint": settings_pb2.Constraint(**{name: written})}
    else:
        own = {_RENAMED.get(name, name): written}
    return Wire(settings=settings_pb2.GenerationSettings(**own))


def _dry(dry: Dry) -> settings_pb2.DrySettings:
    given: dict[str, Any] = {**dry}
    if "sequence_breakers" in given:
        texts = several(given["sequence_breakers"])
        given["sequence_breakers"] = settings_pb2.SequenceBreakers(texts=texts)
    return settings_pb2.DrySettings(**given)


def _stops(given: str | int | Sequence[str | int]) -> list[settings_pb2.Stop]:
    listed = [given] if isinstance(given, str | int) else several(given)
    return [
        settings_pb2.Stop(text=stop) if isinstance(stop, str) else settings_pb2.Stop(token_id=stop)
        for stop in listed
    ]


def _allowed(tokens: Sequence[int]) -> list[int]:
    listed = list(several(tokens))
    if not listed:
        raise ValueError("must not be empty, since that would allow every token")
    return listed


_RENAMED = {"stop": "stops", "speculation": "mode"}
"""Options that have another name in the contract."""

_WRITE: Mapping[str, Callable[[Any], Any]] = {
    "model": text,
    "proposer": text,
    "speculation": partial(value_of, settings_pb2.SpeculationMode.DESCRIPTOR),
    "sampler_order": partial(value_of, settings_pb2.SamplerOrder.DESCRIPTOR),
    "stop": _stops,
    "allowed_token_ids": _allowed,
    "banned_token_ids": several,
    "dry": _dry,
    "xtc": lambda xtc: settings_pb2.XtcSettings(**xtc),
    "mirostat": lambda mirostat: settings_pb2.MirostatSettings(**mirostat),
    "json": lambda _: settings_pb2.Constraint.AnyJson(),
    "json_schema": json_text,
    "regex": text,
    "lark": text,
    "choice": lambda texts: settings_pb2.Constraint.Choice(texts=map(text, several(texts))),
}
"""How an option that is no plain number or flag is written."""
