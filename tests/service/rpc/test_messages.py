from typing import get_args

import pytest

from outrider.v1 import capability_pb2, generation_pb2
from service.generation import events
from service.generation.finish import FinishReason
from service.rpc.messages import capability_message, event_message
from service.speculation.capability import (
    Declared,
    DraftSource,
    Ready,
    SpeculativeCapability,
    Unavailable,
    Unsupported,
)

Event = generation_pb2.SemanticEvent
Capability = capability_pb2.SpeculativeCapability

EVENTS = (
    (events.TextDelta("a"), Event(text_delta="a")),
    (events.ReasoningDelta("b"), Event(reasoning_delta="b")),
    (
        events.ToolCallStart(1, "c", "f"),
        Event(tool_call_start=generation_pb2.ToolCallStart(index=1, id="c", name="f")),
    ),
    (
        events.ToolArgumentsDelta(1, "{"),
        Event(tool_arguments_delta=generation_pb2.ToolArgumentsDelta(index=1, json_fragment="{")),
    ),
    (events.ToolCallEnd(), Event(tool_call_end=generation_pb2.ToolCallEnd())),
    (
        events.Finished(FinishReason.EOS),
        Event(finished=generation_pb2.OutputFinished(reason=generation_pb2.FINISH_REASON_EOS)),
    ),
)
SEPARATE = capability_pb2.DRAFT_SOURCE_SEPARATE
CAPABILITIES = (
    (Unavailable(), Capability(unavailable=Capability.Unavailable())),
    (
        Declared(DraftSource.SEPARATE),
        Capability(declared=Capability.Declared(source=SEPARATE)),
    ),
    (Ready(DraftSource.SEPARATE), Capability(ready=Capability.Ready(source=SEPARATE))),
    (
        Unsupported(DraftSource.SEPARATE, "mamba"),
        Capability(unsupported=Capability.Unsupported(source=SEPARATE, architecture="mamba")),
    ),
)


@pytest.mark.parametrize(("event", "expected"), EVENTS)
def test_event_has_its_message(event: events.SemanticEvent, expected: Event):
    assert expected == event_message(event)


@pytest.mark.parametrize(("capability", "expected"), CAPABILITIES)
def test_capability_has_its_message(capability: SpeculativeCapability, expected: Capability):
    assert expected == capability_message(capability)


def test_every_variant_has_a_case():
    assert set(get_args(events.SemanticEvent)) == {type(event) for event, _ in EVENTS}
    assert set(get_args(SpeculativeCapability)) == {type(state) for state, _ in CAPABILITIES}
