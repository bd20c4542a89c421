import dataclasses
import typing

import pytest

from service.generation import events


def test_semantic_events_are_the_seeds_six_variants():
    names = {variant.__name__ for variant in typing.get_args(events.SemanticEvent)}
    assert names == {
        "ReasoningDelta",
        "TextDelta",
        "ToolCallStart",
        "ToolArgumentsDelta",
        "ToolCallEnd",
        "Finished",
    }


def test_semantic_event_is_a_value_that_keeps_its_fields():
    event = events.ToolCallStart(2, "call_2", "lookup")
    assert event == events.ToolCallStart(**dataclasses.asdict(event))
    with pytest.raises(dataclasses.FrozenInstanceError):
        event.index = 3
