"""Each field by itself: whether it is served, and which values are refused by which path."""

import math

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from outrider.v1 import (
    generation_service_pb2,
    model_service_pb2,
    scheduler_service_pb2,
)
from outrider.v1.generation_service_pb2 import (
    CompleteRequest,
)
from service.errors import FieldViolation, UnsupportedField
from service.rpc.rules import (
    MAX_BIASES,
    MAX_CHOICES,
    MAX_LISTED_IDS,
    MAX_SOURCE_BYTES,
    RULES,
    UNSERVED,
)
from service.rpc.validation import validate
from service.text.stops import MAX_STOPS
from tests.service.rpc.asking import (
    Breakers,
    Constraint,
    Dry,
    Mirostat,
    Stop,
    Xtc,
    choices,
    fields_refused,
    generation,
    settings,
)


def request_descriptors() -> list[Descriptor]:
    services = (generation_service_pb2, model_service_pb2, scheduler_service_pb2)
    return [
        method.input_type
        for file in services
        for service in file.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    ]


def reachable(descriptor: Descriptor, seen: dict[str, Descriptor]) -> dict[str, Descriptor]:
    """Collect the messages of this contract that a served field can lead to."""
    if descriptor.full_name in seen or not descriptor.full_name.startswith("outrider."):
        return seen
    seen[descriptor.full_name] = descriptor
    for field in descriptor.fields:
        served = RULES.get(descriptor.full_name, {}).get(field.name) is not UNSERVED
        if field.message_type is not None and served and not is_map(field):
            reachable(field.message_type, seen)
    return seen


def is_map(field: FieldDescriptor) -> bool:
    """Whether a field is a map: its entries are no messages to anybody."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def test_rules_classify_every_field_of_every_request():
    """A new field of a request is neither served nor refused until this table says which."""
    messages: dict[str, Descriptor] = {}
    for descriptor in request_descriptors():
        reachable(descriptor, messages)
    expected = {
        name: sorted(field.name for field in message.fields) for name, message in messages.items()
    }
    assert expected == {name: sorted(rules) for name, rules in RULES.items()}


NOT_FINITE = (math.nan, math.inf, -math.inf, 1e39)
REFUSED_SETTINGS = [
    *((name, value) for name in ("temperature",) for value in (*NOT_FINITE, -1.0, -1e-9)),
    *((name, value) for name in ("top_p", "min_p") for value in (*NOT_FINITE, 2.0, -0.1)),
    *(("repetition_penalty", value) for value in (*NOT_FINITE, 0.0, -1.0)),
    *((name, v) for name in ("frequency_penalty", "presence_penalty") for v in NOT_FINITE),
    *(("top_k", value) for value in (-1, -2)),
    *((name, value) for name in ("max_new_tokens", "max_context") for value in (0, -1)),
    *(("top_a", value) for value in (*NOT_FINITE, -0.1)),
    *(("typical_p", value) for value in (*NOT_FINITE, 0.0, 1.1)),
    *((name, v) for name in ("logprobs", "prompt_logprobs") for v in (-1, 21, 10**6)),
    ("min_new_tokens", -1),
    ("sampler_order", 3),
    ("logit_bias", dict.fromkeys(range(MAX_BIASES + 1), 0.0)),
    ("allowed_token_ids", range(MAX_LISTED_IDS + 1)),
    ("banned_token_ids", range(MAX_LISTED_IDS + 1)),
    ("stops", [Stop(text="x")] * (MAX_STOPS + 1)),
    ("stops", [Stop(text="x")] * 100_000),
]


@pytest.mark.parametrize(
    ("name", "value"), REFUSED_SETTINGS, ids=[name for name, _ in REFUSED_SETTINGS]
)
def test_setting_out_of_range_is_refused_by_its_path(name: str, value: object):
    """Cases B18, B29 and B30: refused before any work, by name, with what was given."""
    message = CompleteRequest(generation=settings(**{name: value}))
    assert {f"generation.settings.{name}"} == fields_refused(message)


REFUSED_PARTS = [
    *(("dry.multiplier", Dry(multiplier=value)) for value in (*NOT_FINITE, -0.5)),
    *(("dry.base", Dry(base=value)) for value in (*NOT_FINITE, 0.9)),
    *(("dry.allowed_length", Dry(allowed_length=value)) for value in (0, -1)),
    ("dry.sequence_breakers.texts", Dry(sequence_breakers=Breakers(texts=["x"] * 65))),
    ("dry.sequence_breakers.texts[1]", Dry(sequence_breakers=Breakers(texts=["x", ""]))),
    ("dry.sequence_breakers.texts[0]", Dry(sequence_breakers=Breakers(texts=["x" * 257]))),
    *(("xtc.probability", Xtc(probability=value)) for value in (*NOT_FINITE, -0.1, 1.1)),
    *(("xtc.threshold", Xtc(threshold=value)) for value in (*NOT_FINITE, -0.1, 1.1)),
    *(("mirostat.version", Mirostat(version=value)) for value in (0, 3)),
    *(("mirostat.tau", Mirostat(tau=value)) for value in (*NOT_FINITE, 0.0, -1.0)),
    *(("mirostat.eta", Mirostat(eta=value)) for value in (*NOT_FINITE, 0.0, -1.0)),
    *(("logit_bias[7]", {5: 1.0, 7: value}) for value in NOT_FINITE),
    ("constraint.constraint", Constraint()),
    ("constraint.json_schema", Constraint(json_schema="")),
    ("constraint.json_schema", Constraint(json_schema="x" * (MAX_SOURCE_BYTES + 1))),
    ("constraint.regex", Constraint(regex="")),
    ("constraint.regex", Constraint(regex="é" * MAX_SOURCE_BYTES)),
    ("constraint.lark", Constraint(lark="")),
    ("constraint.choice.texts", choices()),
    ("constraint.choice.texts", choices(*("x" * (MAX_CHOICES + 1)))),
    ("constraint.choice.texts[1]", choices("a", "")),
    ("constraint.choice.texts[0]", choices("x" * (MAX_SOURCE_BYTES + 1))),
]


@pytest.mark.parametrize(("path", "value"), REFUSED_PARTS, ids=[path for path, _ in REFUSED_PARTS])
def test_part_of_a_setting_is_refused_by_its_own_path(path: str, value: object):
    """Cases B29, B30 and, of the sizes, B33."""
    name = path.split(".", maxsplit=1)[0].split("[", maxsplit=1)[0]
    assert {f"settings.{path}"} == fields_refused(settings(**{name: value}))


def test_priority_alone_is_not_served():
    """The test below has what happens to one of these; a new one needs its case there."""
    unserved = {
        f"{name}.{field}"
        for name, rules in RULES.items()
        for field, rule in rules.items()
        if rule is UNSERVED
    }
    assert {"outrider.v1.Generation.priority"} == unserved


@pytest.mark.parametrize("priority", [0, 5])
def test_unserved_field_is_refused_by_name(priority: int):
    """Even at its neutral value: what is not served is never dropped silently."""
    with pytest.raises(UnsupportedField) as caught:
        validate(generation(priority=priority))
    assert (FieldViolation("priority", "is not served yet"),) == caught.value.violations
