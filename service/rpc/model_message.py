"""A loaded model as its wire message: what it is, what it can do, where its limits are."""

from __future__ import annotations

from outrider.v1 import model_service_pb2, settings_pb2
from service.generation.config import (
    DEFAULT_MAX_NEW_TOKENS,
    GenerationOverrides,
    resolve_generation_config,
)
from service.generation.setting_rules import MAX_LOGPROBS
from service.rpc.echo import settings_message
from service.rpc.enums import DRAFT_SOURCES, SPECULATION_MODES
from service.rpc.messages import capability_message
from service.runtime.models import LoadedModel, LoadedProposer
from service.runtime.speculation_choice import widest
from service.runtime.statistics import RuntimeStatistics
from service.text.stops import MAX_STOPS


def model_message(
    model: LoadedModel, statistics: RuntimeStatistics, max_message_bytes: int
) -> model_service_pb2.Model:
    """Return a model's description; `max_message_bytes` is the server's limit."""
    about = model.information
    return model_service_pb2.Model(
        name=model.name,
        architecture=about.architecture,
        engine=about.engine,
        weights=about.weights,
        tokenizer_fingerprint=about.tokenizer_fingerprint,
        bit_exact=about.bit_exact,
        vocabulary_size=model.vocabulary_size,
        eos_token_ids=sorted(model.eos_token_ids),
        has_chat_template=model.text.has_chat_template,
        dialect=model.text.dialect.name if model.text.has_chat_template else "",
        speculative_capability=capability_message(model.capability),
        proposers=[proposer_message(model, proposer) for proposer in model.proposers],
        limits=limits_message(model, statistics, max_message_bytes),
        default_settings=default_settings(model),
    )


def proposer_message(model: LoadedModel, loaded: LoadedProposer) -> model_service_pb2.Proposer:
    """Return a proposer's description; its width is what a pass of this model admits."""
    traits = loaded.proposer.traits
    message = model_service_pb2.Proposer(
        name=loaded.name,
        mode=SPECULATION_MODES[loaded.mode],
        max_speculative_tokens=widest(traits, model.target.limits),
    )
    if traits.source is not None:
        message.draft_source = DRAFT_SOURCES[traits.source]
    return message


def limits_message(
    model: LoadedModel, statistics: RuntimeStatistics, max_message_bytes: int
) -> model_service_pb2.ModelLimits:
    """Return what a request to this model may ask for."""
    limits = model.target.limits
    widths = [widest(loaded.proposer.traits, limits) for loaded in model.proposers]
    return model_service_pb2.ModelLimits(
        max_context=limits.max_context,
        max_prompt_tokens=limits.max_context - 1,
        max_speculative_tokens=max(widths, default=0),
        max_logprobs=MAX_LOGPROBS,
        max_stops=MAX_STOPS,
        max_lanes=statistics.max_lanes,
        max_queued_requests=statistics.max_queued_requests,
        max_message_bytes=max_message_bytes,
        cache_bytes=model.information.cache_bytes,
    )


def default_settings(model: LoadedModel) -> settings_pb2.GenerationSettings:
    """Return what empty settings resolve to."""
    config = resolve_generation_config(model.defaults, GenerationOverrides())
    settings = settings_message(config)
    settings.max_new_tokens = config.max_new_tokens or DEFAULT_MAX_NEW_TOKENS
    settings.max_context = model.target.limits.max_context
    settings.stop_on_eos = True
    settings.include_stop = False
    return settings
