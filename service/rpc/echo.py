"""What a request resolved to, as it is told: what is off, or has no say, is left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

from outrider.v1 import settings_pb2
from service.generation.config import ResolvedGenerationConfig
from service.rpc.constraints import constraint_message
from service.rpc.mirror import copy_field, mirror
from service.runtime.request import Admitted, GenerationRequest, Stop

Truncation = Literal["top_k", "top_p", "min_p", "top_a", "typical_p"]
_REPLACED_BY_MIROSTAT: tuple[Truncation, ...] = get_args(Truncation)


def resolved_settings(
    admitted: Admitted, request: GenerationRequest
) -> settings_pb2.GenerationSettings:
    """Return the resolved configuration, and the request's own ends and stops."""
    settings = settings_message(admitted.config)
    settings.seed = admitted.seed
    settings.max_new_tokens = admitted.max_tokens
    settings.include_stop = request.include_stop
    settings.stop_on_eos = request.stop_on_eos
    settings.stops.extend(stop_message(stop) for stop in request.stops)
    settings.max_context = admitted.max_context
    copy_field(settings, "eos_token_id", request.eos_token_id)
    if request.constraint is not None:
        settings.constraint.CopyFrom(constraint_message(request.constraint))
    return settings


def settings_message(config: ResolvedGenerationConfig) -> settings_pb2.GenerationSettings:
    """Return a configuration; DRY, XTC and Mirostat are there only where they act."""
    acting = _acting(config)
    settings = mirror(acting, settings_pb2.GenerationSettings())
    if acting.mirostat is not None:
        for name in _REPLACED_BY_MIROSTAT:
            settings.ClearField(name)
    return settings


def stop_message(stop: Stop) -> settings_pb2.Stop:
    """Return a stop as it was asked for."""
    return mirror(stop, settings_pb2.Stop())


def _acting(config: ResolvedGenerationConfig) -> ResolvedGenerationConfig:
    is_sampled = config.temperature > 0.0
    dry, xtc = config.dry, config.xtc
    looks_back = config.repeat_last_n != 0
    return replace(
        config,
        dry=dry if looks_back and dry is not None and dry.multiplier > 0.0 else None,
        xtc=xtc if is_sampled and xtc is not None and xtc.probability > 0.0 else None,
        mirostat=config.mirostat if is_sampled else None,
    )
