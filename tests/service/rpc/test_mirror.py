"""Each portable field has its proto field and the other way round, and its value arrives."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from types import UnionType
from typing import Any, get_args, get_type_hints

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from outrider.v1 import (
    capability_pb2,
    generation_pb2,
    model_service_pb2,
    settings_pb2,
    statistics_pb2,
)
from service.generation import events
from service.generation.config import GenerationOverrides, ResolvedGenerationConfig
from service.generation.finish import MatchedStop
from service.rpc.enums import WIRE_VALUES
from service.rpc.messages import RATES, request_statistics
from service.rpc.mirror import mirror, seconds_of
from service.runtime.models import LoadedModel, LoadedProposer, ModelInformation
from service.runtime.request import (
    Admitted,
    Ended,
    GenerationRequest,
    ResolvedSpeculation,
    SpeculationRequest,
    Stop,
)
from service.runtime.statistics import RuntimeStatistics
from service.speculation import capability
from service.speculation.contract import ProposerTraits, TargetLimits
from service.speculation.options import SchedulerOptions
from service.speculation.publication import PublishedRound
from service.speculation.statistics import SchedulerStatistics, SequenceStatistics


def portable_names(portable: type) -> set[str]:
    return {field.name for field in fields(portable)}


def wire_names(wire: type[Message]) -> set[str]:
    return set(wire.DESCRIPTOR.fields_by_name)


@dataclass(frozen=True)
class Mirrored:
    """Two types, and the names that only one side has, each for a stated reason."""

    portable: type
    wire: type[Message]
    only_portable: frozenset[str] = frozenset()
    only_wire: frozenset[str] = frozenset()


def pair(portable: type, wire: type[Message], only_portable: str = "", only_wire: str = ""):
    both = frozenset(only_portable.split()), frozenset(only_wire.split())
    return pytest.param(Mirrored(portable, wire, *both), id=portable.__name__)


REQUEST_SETTINGS = "seed max_context stops include_stop stop_on_eos eos_token_id constraint"
WIRE = capability_pb2.SpeculativeCapability

PAIRS = (
    # Rates follow from the counters.
    pair(SequenceStatistics, statistics_pb2.RequestStatistics, only_wire=" ".join(RATES)),
    pair(SchedulerStatistics, statistics_pb2.SchedulerStatistics),
    pair(SchedulerOptions, statistics_pb2.SchedulerOptions),
    pair(ResolvedSpeculation, generation_pb2.ResolvedSpeculation),
    pair(SpeculationRequest, settings_pb2.SpeculationSettings),
    pair(MatchedStop, generation_pb2.MatchedStop),
    pair(Stop, settings_pb2.Stop),
    # The request and its admission hold the rest of the settings.
    pair(
        ResolvedGenerationConfig,
        settings_pb2.GenerationSettings,
        only_wire=REQUEST_SETTINGS,
    ),
    pair(
        GenerationOverrides,
        settings_pb2.GenerationSettings,
        only_wire=REQUEST_SETTINGS,
    ),
    # `prompt` is a oneof; `overrides` and what follows it are the wire's `settings`.
    pair(
        GenerationRequest,
        generation_pb2.Generation,
        only_portable=f"request_id caller prompt overrides {REQUEST_SETTINGS}",
        only_wire="text token_ids chat settings priority",
    ),
    # `config` and three more are the wire's `settings`.
    pair(
        Admitted,
        generation_pb2.Admitted,
        only_portable="config seed max_tokens max_context",
        only_wire="settings priority",
    ),
    # `tokens`, `sources` and `logprobs` are parallel lists of the wire's `tokens`.
    pair(
        PublishedRound,
        generation_pb2.Round,
        only_portable="sources judged accepted logprobs",
        only_wire="judged_tokens accepted_tokens",
    ),
    # The counts are the wire's `usage`; the events come from publications.
    pair(
        Ended,
        generation_pb2.Finished,
        only_portable="prompt_tokens completion_tokens reasoning_tokens",
        only_wire="usage events",
    ),
    pair(events.ToolCallStart, generation_pb2.ToolCallStart),
    pair(events.ToolArgumentsDelta, generation_pb2.ToolArgumentsDelta),
    pair(events.ToolCallEnd, generation_pb2.ToolCallEnd),
    pair(events.Finished, generation_pb2.OutputFinished),
    pair(capability.Unavailable, WIRE.Unavailable),
    pair(capability.Declared, WIRE.Declared),
    pair(capability.Ready, WIRE.Ready),
    pair(capability.Unsupported, WIRE.Unsupported),
    # What a model is made of stays here; the wire has what each part is and can do.
    pair(
        LoadedModel,
        model_service_pb2.Model,
        only_portable="target text defaults capability scheduler information aliases observer",
        only_wire="architecture engine weights tokenizer_fingerprint bit_exact vocabulary_size "
        "has_chat_template dialect speculative_capability limits default_settings",
    ),
    pair(
        LoadedProposer,
        model_service_pb2.Proposer,
        only_portable="proposer",
        only_wire="max_speculative_tokens draft_source",
    ),
    # The width on the wire is what a pass of the model admits, too.
    pair(
        ProposerTraits,
        model_service_pb2.Proposer,
        only_portable="source max_proposals has_distribution can_branch needs_hidden_states "
        "greedy_only",
        only_wire="mode max_speculative_tokens draft_source",
    ),
    # Slots are the wire's `max_lanes`; how passes are packed concerns no client.
    pair(
        TargetLimits,
        model_service_pb2.ModelLimits,
        only_portable="vocabulary_size max_slots max_pass_lanes max_pass_rows cancellations "
        "topology can_overlap_drafting supports_component_timings",
        only_wire="max_prompt_tokens max_speculative_tokens max_logprobs max_stops max_lanes "
        "max_queued_requests max_message_bytes cache_bytes",
    ),
)


@pytest.mark.parametrize("mirrored", PAIRS)
def test_portable_and_wire_have_the_same_fields(mirrored: Mirrored):
    """A field that only one side has is listed here, so adding one alone fails."""
    portable, wire = portable_names(mirrored.portable), wire_names(mirrored.wire)
    assert mirrored.only_portable == portable - wire
    assert mirrored.only_wire == wire - portable


def variants(union: UnionType) -> set[str]:
    return {variant.__name__ for variant in get_args(union)}


def snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


def test_every_semantic_event_has_its_field():
    expected = {snake(name) for name in variants(events.SemanticEvent)}
    assert expected == wire_names(generation_pb2.SemanticEvent)


def test_every_capability_state_has_its_field():
    expected = {snake(name) for name in variants(capability.SpeculativeCapability)}
    assert expected == wire_names(WIRE)


def test_information_about_a_model_reaches_the_wire():
    wire = wire_names(model_service_pb2.Model) | wire_names(model_service_pb2.ModelLimits)
    assert set() == portable_names(ModelInformation) - wire


def test_runtime_statistics_reach_the_wire():
    """Whatever the runtime's snapshot holds is in the statistics, the options or the load."""
    from outrider.v1 import scheduler_service_pb2 as wire  # noqa: PLC0415 - only here

    sent = wire_names(wire.GetLoadResponse) | wire_names(wire.GetStatisticsResponse)
    assert {"model", "scheduler", "is_serving"} == portable_names(RuntimeStatistics) - sent


def sample(kind: Any, number: int) -> Any:
    """Return a value of a type that no default has."""
    plain: dict[Any, Any] = {
        bool: True,
        int: number,
        float: number + 0.5,
        str: f"value {number}",
        tuple[int, ...]: (number, number + 1),
        tuple[str, ...]: (f"value {number}",),
        frozenset[int]: frozenset({number, number + 1}),
        Mapping[int, float]: {number: number + 0.5},
    }
    if kind in plain:
        return plain[kind]
    if isinstance(kind, type) and is_dataclass(kind):
        return sampled(kind)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return list(kind)[-1]
    return sample(next(arg for arg in get_args(kind) if arg is not type(None)), number)


def sampled(portable: type) -> Any:
    assert is_dataclass(portable)
    hints = get_type_hints(portable)
    values = {
        field.name: sample(hints[field.name], number)
        for number, field in enumerate(fields(portable), 1)
    }
    return portable(**values)


def arrived(message: Message, name: str, kind: type) -> Any:
    value = getattr(message, name)
    if isinstance(value, Duration):
        return seconds_of(value)
    if is_dataclass(kind):
        names = [field.name for field in fields(kind)]
        hints = get_type_hints(kind)
        return kind(**{each: arrived(value, each, hints[each]) for each in names})
    if kind in {dict, frozenset}:
        return kind(value)
    return tuple(value) if message.DESCRIPTOR.fields_by_name[name].is_repeated else value


MIRRORED_WHOLE = (
    (SequenceStatistics, statistics_pb2.RequestStatistics),
    (SchedulerStatistics, statistics_pb2.SchedulerStatistics),
    (SchedulerOptions, statistics_pb2.SchedulerOptions),
    (ResolvedGenerationConfig, settings_pb2.GenerationSettings),
    (ResolvedSpeculation, generation_pb2.ResolvedSpeculation),
)


@pytest.mark.parametrize(
    ("portable", "wire"), MIRRORED_WHOLE, ids=[case[0].__name__ for case in MIRRORED_WHOLE]
)
def test_mirror_carries_every_value(portable: type, wire: type[Message]):
    value = sampled(portable)
    message = mirror(value, wire())
    for field in fields(portable):
        given = getattr(value, field.name)
        expected = WIRE_VALUES[given] if isinstance(given, Enum) else given
        assert expected == arrived(message, field.name, type(given)), field.name


def test_mirror_leaves_none_absent():
    message = mirror(MatchedStop(3, text=None, token_id=0), generation_pb2.MatchedStop())
    assert "token_id" == message.WhichOneof("stop")


def test_rates_are_absent_where_nothing_was_drafted():
    message = request_statistics(SequenceStatistics(emitted_tokens=3, plain_steps=2))
    assert [False] * 3 == [message.HasField(rate) for rate in RATES]


def test_rates_are_present_where_something_was_judged():
    statistics = SequenceStatistics(
        draft_tokens=8, judged_tokens=5, accepted_tokens=4, rounds=2, emitted_tokens=7
    )
    message = request_statistics(statistics)
    assert (0.5, 0.8, 3.0) == tuple(getattr(message, rate) for rate in RATES)
