"""Prompts and options as request messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, cast

from outrider.chats import Chat, Message, chat_message, json_text
from outrider.options import ChatOptions, Dry, Options, Prompt
from outrider.v1 import generation_pb2, settings_pb2

_OF_CALL = frozenset({"request_id", "timeout"})
_OF_GENERATION = frozenset({"model", "priority", "component_timings"})
_OF_SPECULATION = frozenset({"proposer", "num_speculative_tokens", "lookahead"})
_RENAMED = frozenset({"stop", "speculation"})
_OF_CHAT = frozenset(field.name for field in fields(Chat)) - {"messages"}


def generation_message(prompt: Prompt, options: Options) -> generation_pb2.Generation:
    """Return what to generate.

    Raises:
        TypeError: an option does not exist, or has another type.
        ValueError: a value does not fit its field, or two options exclude each other.
    """
    _require_known(options)
    given: dict[str, Any] = {**options}
    message = generation_pb2.Generation(
        settings=_settings(given), speculation=_speculation(given), **_only(given, _OF_GENERATION)
    )
    if isinstance(prompt, str):
        message.text = prompt
    elif isinstance(prompt, Chat):
        message.chat.CopyFrom(chat_message(prompt))
    else:
        message.token_ids.ids.extend(prompt)
    return message


def conversation(
    messages: Sequence[Message | Mapping[str, Any]], options: ChatOptions
) -> tuple[Chat, Options]:
    """Return a conversation and what remains of its options."""
    given: dict[str, Any] = {**options}
    others = {name: value for name, value in given.items() if name not in _OF_CHAT}
    return Chat(messages, **_only(given, _OF_CHAT)), cast("Options", others)


def _require_known(options: Options) -> None:
    unknown = sorted(options.keys() - Options.__annotations__.keys())
    if unknown:
        raise TypeError(f"unknown options: {', '.join(unknown)}")


def _only(given: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name in names}


def _settings(given: Mapping[str, Any]) -> settings_pb2.GenerationSettings:
    elsewhere = _OF_CALL | _OF_GENERATION | _OF_SPECULATION | _RENAMED | _CONSTRAINTS.keys()
    own = {
        name: _WRITE[name](value) if name in _WRITE else value
        for name, value in given.items()
        if name not in elsewhere
    }
    return settings_pb2.GenerationSettings(
        stops=_stops(given.get("stop", ())), constraint=_constraint(given), **own
    )


def _dry(dry: Dry) -> settings_pb2.DrySettings:
    given: dict[str, Any] = {**dry}
    if "sequence_breakers" in given:
        texts = given["sequence_breakers"]
        given["sequence_breakers"] = settings_pb2.SequenceBreakers(texts=texts)
    return settings_pb2.DrySettings(**given)


_WRITE: Mapping[str, Callable[[Any], Any]] = {
    "dry": _dry,
    "xtc": lambda xtc: settings_pb2.XtcSettings(**xtc),
    "mirostat": lambda mirostat: settings_pb2.MirostatSettings(**mirostat),
    "sampler_order": lambda order: settings_pb2.SamplerOrder.Value(
        f"SAMPLER_ORDER_{order.upper()}"
    ),
}
"""How an option that is no scalar is written."""


def _constraint(given: Mapping[str, Any]) -> settings_pb2.Constraint | None:
    wire = settings_pb2.Constraint
    asked = [name for name in _CONSTRAINTS if name in given and given[name] is not False]
    if len(asked) > 1:
        raise ValueError(f"{' and '.join(asked)} exclude each other")
    return wire(**{name: _CONSTRAINTS[name](given[name]) for name in asked}) if asked else None


_CONSTRAINTS: Mapping[str, Callable[[Any], Any]] = {
    "json": lambda _: settings_pb2.Constraint.AnyJson(),
    "json_schema": json_text,
    "regex": str,
    "lark": str,
    "choice": lambda texts: settings_pb2.Constraint.Choice(texts=texts),
}
"""The options that make a constraint, and how each is written."""


def _stops(given: str | int | Sequence[str | int]) -> list[settings_pb2.Stop]:
    several = [given] if isinstance(given, str | int) else given
    return [
        settings_pb2.Stop(text=stop) if isinstance(stop, str) else settings_pb2.Stop(token_id=stop)
        for stop in several
    ]


def _speculation(given: Mapping[str, Any]) -> settings_pb2.SpeculationSettings:
    message = settings_pb2.SpeculationSettings(**_only(given, _OF_SPECULATION))
    if "speculation" in given:
        name = f"SPECULATION_MODE_{given['speculation'].upper()}"
        message.mode = settings_pb2.SpeculationMode.Value(name)
    return message
