import math

import pytest
from google.protobuf.descriptor import Descriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from outrider.v1 import (
    chat_pb2,
    generation_pb2,
    generation_service_pb2,
    model_service_pb2,
    scheduler_service_pb2,
    settings_pb2,
)
from outrider.v1.generation_service_pb2 import (
    CompleteRequest,
    GenerateRequest,
    StreamGenerateRequest,
)
from service.errors import FieldViolation, InvalidRequest, UnsupportedField
from service.rpc.rules import RULES, UNSERVED
from service.rpc.validation import MAX_FINDINGS, validate
from service.text.stops import MAX_STOPS

Settings = settings_pb2.GenerationSettings
Speculation = settings_pb2.SpeculationSettings
Generation = generation_pb2.Generation
Stop = settings_pb2.Stop


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
        if field.message_type is not None and served:
            reachable(field.message_type, seen)
    return seen


def test_rules_classify_every_field_of_every_request():
    """A new field of a request is neither served nor refused until this table says which."""
    messages: dict[str, Descriptor] = {}
    for descriptor in request_descriptors():
        reachable(descriptor, messages)
    expected = {
        name: sorted(field.name for field in message.fields) for name, message in messages.items()
    }
    assert expected == {name: sorted(rules) for name, rules in RULES.items()}


def generation(**fields: object) -> Generation:
    return Generation(**{"text": "once", **fields})


def settings(**fields: object) -> Generation:
    return generation(settings=Settings(**fields))


def violations(message: Message) -> dict[str, str]:
    with pytest.raises((InvalidRequest, UnsupportedField)) as caught:
        validate(message)
    return {violation.field: violation.description for violation in caught.value.violations}


def fields_refused(message: Message) -> set[str]:
    with pytest.raises(InvalidRequest) as caught:
        validate(message)
    return {violation.field for violation in caught.value.violations}


VALID = (
    generation(),
    generation(token_ids=generation_pb2.TokenIds(ids=[0])),
    generation(chat=chat_pb2.Chat(messages=[chat_pb2.ChatMessage(role="user")])),
    generation(timeout=Duration(nanos=1)),
    settings(temperature=0.0, top_k=0, top_p=0.0, min_p=0.0, seed=0),
    settings(temperature=1e-46),
    settings(top_k=2**31 - 1, top_p=1.0, min_p=1.0, repeat_last_n=-1, max_new_tokens=1),
    settings(do_sample=False, temperature=0.0),
    settings(stops=[Stop(text="a"), Stop(token_id=0)]),
    generation(speculation=Speculation(mode=settings_pb2.SPECULATION_MODE_UNSPECIFIED)),
    generation(speculation=Speculation(mode=settings_pb2.SPECULATION_MODE_NONE, lookahead=False)),
    CompleteRequest(generation=generation()),
    GenerateRequest(request_id="a", cancel=GenerateRequest.Cancel()),
    model_service_pb2.TokenizeRequest(),
)


@pytest.mark.parametrize("message", VALID, ids=range(len(VALID)))
def test_valid_message_is_accepted(message: Message):
    validate(message)


NOT_FINITE = (math.nan, math.inf, -math.inf, 1e39)
REFUSED_SETTINGS = [
    *((name, value) for name in ("temperature",) for value in (*NOT_FINITE, -1.0, -1e-9)),
    *((name, value) for name in ("top_p", "min_p") for value in (*NOT_FINITE, 2.0, -0.1)),
    *(("repetition_penalty", value) for value in (*NOT_FINITE, 0.0, -1.0)),
    *((name, v) for name in ("frequency_penalty", "presence_penalty") for v in NOT_FINITE),
    *(("top_k", value) for value in (-1, -2)),
    *((name, value) for name in ("max_new_tokens", "max_context") for value in (0, -1)),
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


REFUSED = (
    (GenerateRequest(), {"request_id", "action"}),
    (GenerateRequest(request_id="a"), {"action"}),
    (GenerateRequest(request_id="a" * 129, start=generation()), {"request_id"}),
    (GenerateRequest(request_id="é" * 65, start=generation()), {"request_id"}),
    (CompleteRequest(), {"generation"}),
    (StreamGenerateRequest(), {"generation"}),
    (Generation(), {"prompt"}),
    (Generation(text=""), {"text"}),
    (Generation(token_ids=generation_pb2.TokenIds()), {"token_ids.ids"}),
    (Generation(chat=chat_pb2.Chat()), {"chat.messages"}),
    (
        Generation(chat=chat_pb2.Chat(messages=[chat_pb2.ChatMessage(content="x")])),
        {"chat.messages[0].role"},
    ),
    (generation(model="m" * 257), {"model"}),
    (generation(timeout=Duration()), {"timeout"}),
    (generation(timeout=Duration(seconds=-1)), {"timeout"}),
    (generation(timeout=Duration(seconds=1, nanos=-1)), {"timeout"}),
    (generation(timeout=Duration(seconds=1, nanos=10**9)), {"timeout"}),
    (settings(do_sample=True, temperature=0.0), {"settings.temperature"}),
    (settings(stops=[Stop(text="")]), {"settings.stops[0].text"}),
    (settings(stops=[Stop(text="a"), Stop(text="")]), {"settings.stops[1].text"}),
    (settings(stops=[Stop()]), {"settings.stops[0].stop"}),
    (settings(stops=[Stop(text="é" * 513)]), {"settings.stops[0].text"}),
    (generation(speculation=Speculation(mode=99)), {"speculation.mode"}),
    (generation(speculation=Speculation(proposer="")), {"speculation.proposer"}),
    (
        generation(speculation=Speculation(num_speculative_tokens=0)),
        {"speculation.num_speculative_tokens"},
    ),
    (
        generation(
            speculation=Speculation(
                mode=settings_pb2.SPECULATION_MODE_NONE, proposer="x", num_speculative_tokens=4
            )
        ),
        {"speculation.proposer", "speculation.num_speculative_tokens"},
    ),
    (model_service_pb2.RenderChatRequest(), {"chat"}),
    (
        scheduler_service_pb2.WatchStatisticsRequest(interval=Duration(nanos=99_999_999)),
        {"interval"},
    ),
)


@pytest.mark.parametrize(("message", "fields"), REFUSED, ids=range(len(REFUSED)))
def test_invalid_message_is_refused_by_its_paths(message: Message, fields: set[str]):
    """Case B22, contradictions, unset choices, sizes and values that no enum has."""
    assert fields == fields_refused(message)


def test_every_violation_is_named_at_once():
    message = CompleteRequest(
        request_id="a" * 129,
        generation=Generation(
            text="",
            settings=Settings(temperature=math.nan, top_k=-1, stops=[Stop(text="")], top_a=0.5),
            speculation=Speculation(mode=42),
            timeout=Duration(seconds=-1),
        ),
    )
    expected = {
        "request_id": "must have at most 128 bytes, got 129",
        "generation.text": "must not be empty",
        "generation.settings.temperature": "must be finite in float32, got nan",
        "generation.settings.top_k": "must be at least 0, got -1",
        "generation.settings.top_a": "is not served yet",
        "generation.settings.stops[0].text": "must not be empty",
        "generation.speculation.mode": "42 is no value of this enum",
        "generation.timeout": "must be above zero",
    }
    assert expected == violations(message)


UNSERVED_SETTINGS = {
    "top_a": 0.0,
    "typical_p": 1.0,
    "dry": settings_pb2.DrySettings(),
    "xtc": settings_pb2.XtcSettings(),
    "mirostat": settings_pb2.MirostatSettings(),
    "sampler_order": settings_pb2.SAMPLER_ORDER_TEMPERATURE_LAST,
    "logit_bias": {1: 1.0},
    "min_new_tokens": 0,
    "allowed_token_ids": [1],
    "banned_token_ids": [1],
    "logprobs": 0,
    "prompt_logprobs": 10**6,
    "constraint": settings_pb2.Constraint(),
}


def test_every_unserved_setting_has_a_case():
    rules = RULES["outrider.v1.GenerationSettings"]
    assert {name for name, rule in rules.items() if rule is UNSERVED} == set(UNSERVED_SETTINGS)


@pytest.mark.parametrize(("name", "value"), UNSERVED_SETTINGS.items(), ids=UNSERVED_SETTINGS)
def test_unserved_setting_is_refused_by_name(name: str, value: object):
    """Even at its neutral value: what is not served is never dropped silently."""
    with pytest.raises(UnsupportedField) as caught:
        validate(settings(**{name: value}))
    expected = (FieldViolation(f"settings.{name}", "is not served yet"),)
    assert expected == caught.value.violations


def test_unserved_chat_fields_are_refused_by_name():
    turn = chat_pb2.ChatMessage(role="tool", tool_call_id="1", reasoning="")
    chat = chat_pb2.Chat(messages=[turn], tools=[chat_pb2.Tool(name="f")], dialect="hermes")
    with pytest.raises(UnsupportedField) as caught:
        validate(Generation(chat=chat))
    expected = {
        "chat.messages[0].reasoning",
        "chat.messages[0].tool_call_id",
        "chat.tools",
        "chat.dialect",
    }
    assert expected == {violation.field for violation in caught.value.violations}


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
