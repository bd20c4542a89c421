"""Every violation at once, unknown fields, and an end to both."""

import math

import pytest
from google.protobuf.duration_pb2 import Duration

from outrider.v1.generation_service_pb2 import (
    CompleteRequest,
    StreamGenerateRequest,
)
from service.errors import FieldViolation, UnsupportedField
from service.rpc.validation import MAX_FINDINGS, MAX_OF_A_LIST, validate
from service.text.stops import MAX_STOPS
from tests.service.rpc.asking import (
    Chat,
    Constraint,
    Dry,
    Generation,
    Settings,
    Speculation,
    Stop,
    Turn,
    generation,
    violations,
)


def test_every_violation_is_named_at_once():
    message = CompleteRequest(
        request_id="a" * 129,
        generation=Generation(
            text="",
            settings=Settings(
                temperature=math.nan,
                top_k=-1,
                stops=[Stop(text="")],
                dry=Dry(base=0.5, allowed_length=0),
                logit_bias={3: math.inf},
                constraint=Constraint(regex=""),
            ),
            speculation=Speculation(mode=42),
            timeout=Duration(seconds=-1),
            priority=1,
        ),
    )
    expected = {
        "request_id": "must have at most 128 bytes, got 129",
        "generation.text": "must not be empty",
        "generation.settings.temperature": "must be finite in float32, got nan",
        "generation.settings.top_k": "must be at least 0, got -1",
        "generation.settings.dry.base": "must be at least 1, got 0.5",
        "generation.settings.dry.allowed_length": "must be at least 1, got 0",
        "generation.settings.logit_bias[3]": "must be finite in float32, got inf",
        "generation.settings.constraint.regex": "must not be empty",
        "generation.priority": "is not served yet",
        "generation.settings.stops[0].text": "must not be empty",
        "generation.speculation.mode": "42 is no value of this enum",
        "generation.timeout": "must be above zero",
    }
    assert expected == violations(message)


def test_field_of_a_newer_contract_is_refused_by_number():
    """Field 2047 does not exist here: a newer client is told, not ignored."""
    message = generation()
    message.settings.MergeFromString(b"\xf8\x7f\x01")
    with pytest.raises(UnsupportedField) as caught:
        validate(CompleteRequest(generation=message))
    description = "is a field that this server does not know"
    assert (FieldViolation("generation.settings[2047]", description),) == caught.value.violations


def test_many_unknown_fields_are_told_by_their_size():
    """Naming a megabyte of them would take seconds."""
    unknown = b"\xa0\x06\x01" * 10_000
    told = {"CompleteRequest": "holds 30000 bytes of fields that this server does not know"}
    assert told == violations(CompleteRequest.FromString(unknown))

    nested = StreamGenerateRequest(generation=generation())
    nested.generation.MergeFromString(unknown)
    assert ["StreamGenerateRequest"] == [*violations(nested)]


def test_findings_end_at_their_bound():
    message = CompleteRequest.FromString(b"\xa0\x06\x01" * 300)
    with pytest.raises(UnsupportedField) as caught:
        validate(message)
    assert MAX_FINDINGS == len(caught.value.violations)


def test_long_list_hides_no_other_field():
    """A hundred bad stops, biases and turns leave room for what comes after them."""
    message = CompleteRequest(
        generation=Generation(
            chat=Chat(messages=[Turn()] * 100),
            settings=Settings(
                logit_bias=dict.fromkeys(range(100), math.nan),
                stops=[Stop()] * MAX_STOPS,
                constraint=Constraint(choice=Constraint.Choice(texts=[""] * 100)),
            ),
            speculation=Speculation(num_speculative_tokens=0),
        )
    )
    found = violations(message)
    for path in ("chat.messages", "settings.logit_bias", "settings.stops"):
        assert MAX_OF_A_LIST == sum(f"generation.{path}[" in field for field in found)
    assert "generation.speculation.num_speculative_tokens" in found
