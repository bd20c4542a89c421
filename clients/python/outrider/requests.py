"""Prompts and options as request messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from outrider.options import Chat, Message, Options, Prompt
from outrider.v1 import chat_pb2, generation_pb2, settings_pb2

_OF_CALL = frozenset({"request_id", "timeout"})
_OF_GENERATION = frozenset({"model", "priority", "component_timings"})
_OF_SPECULATION = frozenset({"proposer", "num_speculative_tokens", "lookahead"})
_RENAMED = frozenset({"stop", "speculation"})


def generation_message(prompt: Prompt, options: Options) -> generation_pb2.Generation:
    """Return what to generate.

    Raises:
        TypeError: an option does not exist, or has another type.
        ValueError: a value does not fit its field.
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


def chat_message(chat: Chat) -> chat_pb2.Chat:
    """Return a conversation."""
    return chat_pb2.Chat(messages=map(_turn, chat.messages))


def _turn(message: Message | Mapping[str, str]) -> chat_pb2.ChatMessage:
    if isinstance(message, Message):
        return chat_pb2.ChatMessage(role=message.role, content=message.content)
    return chat_pb2.ChatMessage(**message)  # type: ignore[arg-type]  # the keys are checked there


def _require_known(options: Options) -> None:
    unknown = sorted(options.keys() - Options.__annotations__.keys())
    if unknown:
        raise TypeError(f"unknown options: {', '.join(unknown)}")


def _only(given: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name in names}


def _settings(given: Mapping[str, Any]) -> settings_pb2.GenerationSettings:
    elsewhere = _OF_CALL | _OF_GENERATION | _OF_SPECULATION | _RENAMED
    own = {name: value for name, value in given.items() if name not in elsewhere}
    return settings_pb2.GenerationSettings(stops=_stops(given.get("stop", ())), **own)


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
