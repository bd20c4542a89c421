"""How each portable enum is spelled on the wire: one exhaustive table each."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeVar

from outrider.v1 import capability_pb2, generation_pb2, settings_pb2, statistics_pb2
from service.generation.finish import FinishReason
from service.generation.sampling import SamplerOrder
from service.runtime.request import SpeculationMode, SpeculationOffReason
from service.speculation.capability import DraftSource, ExecutionTopology
from service.speculation.completion import CompletionCancellation
from service.speculation.round import TokenSource

K = TypeVar("K")
V = TypeVar("V")

FINISH_REASONS: Mapping[FinishReason, generation_pb2.FinishReason.ValueType] = {
    FinishReason.EOS: generation_pb2.FINISH_REASON_EOS,
    FinishReason.STOP_SEQUENCE: generation_pb2.FINISH_REASON_STOP_SEQUENCE,
    FinishReason.GRAMMAR_COMPLETE: generation_pb2.FINISH_REASON_GRAMMAR_COMPLETE,
    FinishReason.MAX_TOKENS: generation_pb2.FINISH_REASON_MAX_TOKENS,
    FinishReason.CONTEXT_LENGTH: generation_pb2.FINISH_REASON_CONTEXT_LENGTH,
    FinishReason.CANCELLED: generation_pb2.FINISH_REASON_CANCELLED,
}

TOKEN_SOURCES: Mapping[TokenSource, generation_pb2.TokenSource.ValueType] = {
    TokenSource.PREFILL: generation_pb2.TOKEN_SOURCE_PREFILL,
    TokenSource.ACCEPTED: generation_pb2.TOKEN_SOURCE_ACCEPTED,
    TokenSource.REPLACEMENT: generation_pb2.TOKEN_SOURCE_REPLACEMENT,
    TokenSource.BONUS: generation_pb2.TOKEN_SOURCE_BONUS,
    TokenSource.PLAIN: generation_pb2.TOKEN_SOURCE_PLAIN,
}

SPECULATION_MODES: Mapping[SpeculationMode, settings_pb2.SpeculationMode.ValueType] = {
    SpeculationMode.AUTO: settings_pb2.SPECULATION_MODE_AUTO,
    SpeculationMode.NONE: settings_pb2.SPECULATION_MODE_NONE,
    SpeculationMode.PROMPT_LOOKUP: settings_pb2.SPECULATION_MODE_PROMPT_LOOKUP,
    SpeculationMode.DRAFT_MODEL: settings_pb2.SPECULATION_MODE_DRAFT_MODEL,
    SpeculationMode.MTP: settings_pb2.SPECULATION_MODE_MTP,
    SpeculationMode.EAGLE3: settings_pb2.SPECULATION_MODE_EAGLE3,
    SpeculationMode.SHARED_KV: settings_pb2.SPECULATION_MODE_SHARED_KV,
}

OFF_REASONS: Mapping[SpeculationOffReason, generation_pb2.SpeculationOffReason.ValueType] = {
    SpeculationOffReason.REQUESTED: generation_pb2.SPECULATION_OFF_REASON_REQUESTED,
    SpeculationOffReason.NO_PROPOSER: generation_pb2.SPECULATION_OFF_REASON_NO_PROPOSER,
    SpeculationOffReason.SETTING: generation_pb2.SPECULATION_OFF_REASON_SETTING,
}

SAMPLER_ORDERS: Mapping[SamplerOrder, settings_pb2.SamplerOrder.ValueType] = {
    SamplerOrder.TEMPERATURE_FIRST: settings_pb2.SAMPLER_ORDER_TEMPERATURE_FIRST,
    SamplerOrder.TEMPERATURE_LAST: settings_pb2.SAMPLER_ORDER_TEMPERATURE_LAST,
}

DRAFT_SOURCES: Mapping[DraftSource, capability_pb2.DraftSource.ValueType] = {
    DraftSource.SEPARATE: capability_pb2.DRAFT_SOURCE_SEPARATE,
    DraftSource.EMBEDDED: capability_pb2.DRAFT_SOURCE_EMBEDDED,
}

TOPOLOGIES: Mapping[ExecutionTopology, statistics_pb2.ExecutionTopology.ValueType] = {
    ExecutionTopology.SINGLE: statistics_pb2.EXECUTION_TOPOLOGY_SINGLE,
    ExecutionTopology.SAME_DEVICE_SPLIT: statistics_pb2.EXECUTION_TOPOLOGY_SAME_DEVICE_SPLIT,
    ExecutionTopology.CROSS_DEVICE_SPLIT: statistics_pb2.EXECUTION_TOPOLOGY_CROSS_DEVICE_SPLIT,
}

CANCELLATIONS: Mapping[CompletionCancellation, statistics_pb2.CompletionCancellation.ValueType] = {
    CompletionCancellation.NATIVE_CANCEL: (statistics_pb2.COMPLETION_CANCELLATION_NATIVE_CANCEL),
    CompletionCancellation.QUARANTINE_UNTIL_COMPLETE: (
        statistics_pb2.COMPLETION_CANCELLATION_QUARANTINE_UNTIL_COMPLETE
    ),
}

_TABLES: tuple[Mapping[Any, int], ...] = (
    FINISH_REASONS,
    TOKEN_SOURCES,
    SPECULATION_MODES,
    OFF_REASONS,
    SAMPLER_ORDERS,
    DRAFT_SOURCES,
    TOPOLOGIES,
    CANCELLATIONS,
)

WIRE_VALUES: Mapping[Enum, int] = {
    portable: wire for table in _TABLES for portable, wire in table.items()
}


def inverse(table: Mapping[K, V]) -> dict[V, K]:
    """Return the table read from the wire side."""
    return {wire: portable for portable, wire in table.items()}
