"""Request messages as portable requests: validated whole, then converted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, assert_never
from uuid import uuid4

from google.protobuf.message import Message

from outrider.v1 import generation_pb2, settings_pb2
from service.generation.config import GREEDY_BELOW, GenerationOverrides
from service.generation.sampling import (
    DrySettings,
    MirostatSettings,
    SequenceBreakers,
    XtcSettings,
)
from service.rpc.chats import chat_prompt
from service.rpc.constraints import constraint_of
from service.rpc.enums import SAMPLER_ORDERS, SPECULATION_MODES, inverse
from service.rpc.mirror import seconds_of
from service.runtime.request import (
    GenerationRequest,
    Prompt,
    SpeculationMode,
    SpeculationRequest,
    Stop,
    TextPrompt,
    TokenPrompt,
)

_MODES = inverse(SPECULATION_MODES)


def generation_request(
    message: generation_pb2.Generation,
    *,
    request_id: str,
    caller: str,
    time_remaining: float | None,
) -> GenerationRequest:
    """Convert a valid message.

    Args:
        message: what `validate` accepted.
        request_id: the client's id; empty has one made here.
        caller: whose ids these are.
        time_remaining: seconds until the RPC's deadline, None without one.
    """
    settings = message.settings
    return GenerationRequest(
        request_id=request_id or uuid4().hex,
        caller=caller,
        model=message.model,
        prompt=prompt_of(message),
        overrides=overrides_of(settings),
        seed=settings.seed if settings.HasField("seed") else None,
        stops=tuple(map(stop_of, settings.stops)),
        include_stop=settings.include_stop,
        stop_on_eos=settings.stop_on_eos if settings.HasField("stop_on_eos") else True,
        eos_token_id=settings.eos_token_id if settings.HasField("eos_token_id") else None,
        max_context=settings.max_context if settings.HasField("max_context") else None,
        constraint=constraint_of(settings.constraint) if settings.HasField("constraint") else None,
        speculation=speculation_of(message.speculation),
        timeout=timeout_of(message, time_remaining),
        component_timings=message.component_timings,
    )


def prompt_of(message: generation_pb2.Generation) -> Prompt:
    """Return the one prompt that is set."""
    match message.WhichOneof("prompt"):
        case "text":
            return TextPrompt(message.text)
        case "token_ids":
            return TokenPrompt(tuple(message.token_ids.ids))
        case "chat":
            return chat_prompt(message.chat)
        case None:
            raise AssertionError("validate refuses a request without a prompt")
        case other:
            assert_never(other)


def overrides_of(settings: settings_pb2.GenerationSettings) -> GenerationOverrides:
    """Return the sampling fields that are present; an explicit zero is a value."""
    names = {field.name for field in fields(GenerationOverrides)}
    present = {
        field.name: _READ.get(field.name, _as_it_is)(value)
        for field, value in settings.ListFields()
        if field.name in names
    }
    if present.get("temperature", GREEDY_BELOW) < GREEDY_BELOW:
        present |= {"temperature": 0.0, "do_sample": False}
    return GenerationOverrides(**present)


def dry_of(dry: settings_pb2.DrySettings) -> DrySettings:
    """Return DRY's settings, its breakers among them."""
    given = _scalars(dry)
    if dry.HasField("sequence_breakers"):
        given["sequence_breakers"] = SequenceBreakers(tuple(dry.sequence_breakers.texts))
    return DrySettings(**given)


def _scalars(message: Message) -> dict[str, Any]:
    """Return the scalar fields that are present."""
    return {
        field.name: value for field, value in message.ListFields() if field.message_type is None
    }


def _as_it_is(value: Any) -> Any:
    return value


_ORDERS = inverse(SAMPLER_ORDERS)
_READ: Mapping[str, Callable[[Any], Any]] = {
    "dry": dry_of,
    "xtc": lambda xtc: XtcSettings(**_scalars(xtc)),
    "mirostat": lambda mirostat: MirostatSettings(**_scalars(mirostat)),
    "sampler_order": _ORDERS.get,
    "logit_bias": dict,
    "allowed_token_ids": frozenset,
    "banned_token_ids": frozenset,
}
"""How a field that is no scalar becomes portable."""


def stop_of(stop: settings_pb2.Stop) -> Stop:
    """Return a stop as it was asked for."""
    return Stop(text=stop.text) if stop.HasField("text") else Stop(token_id=stop.token_id)


def speculation_of(settings: settings_pb2.SpeculationSettings) -> SpeculationRequest:
    """Return what was asked of speculation; absence leaves the choice to the server."""
    width = settings.num_speculative_tokens
    return SpeculationRequest(
        mode=_MODES.get(settings.mode, SpeculationMode.AUTO),
        proposer=settings.proposer if settings.HasField("proposer") else None,
        num_speculative_tokens=width if settings.HasField("num_speculative_tokens") else None,
        lookahead=settings.lookahead if settings.HasField("lookahead") else None,
    )


def timeout_of(message: generation_pb2.Generation, time_remaining: float | None) -> float | None:
    """Return the nearer of the request's own timeout and the RPC's deadline, in seconds."""
    own = seconds_of(message.timeout) if message.HasField("timeout") else None
    limits = [limit for limit in (own, time_remaining) if limit is not None]
    return min(limits, default=None)
