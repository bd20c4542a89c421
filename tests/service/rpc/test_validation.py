import math

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import ListValue, Struct, Value

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
from service.rpc.rules import (
    MAX_BIASES,
    MAX_CHOICES,
    MAX_LISTED_IDS,
    MAX_SOURCE_BYTES,
    MAX_TOOLS,
    RULES,
    UNSERVED,
)
from service.rpc.validation import MAX_FINDINGS, validate
from service.text.stops import MAX_STOPS

Settings = settings_pb2.GenerationSettings
Speculation = settings_pb2.SpeculationSettings
Generation = generation_pb2.Generation
Stop = settings_pb2.Stop
Constraint = settings_pb2.Constraint
Dry = settings_pb2.DrySettings
Breakers = settings_pb2.SequenceBreakers
Xtc = settings_pb2.XtcSettings
Mirostat = settings_pb2.MirostatSettings
Chat = chat_pb2.Chat
Turn = chat_pb2.ChatMessage
Tool = chat_pb2.Tool
ToolCall = chat_pb2.ToolCall
ToolChoice = chat_pb2.ToolChoice
NONE = ToolChoice(mode=chat_pb2.TOOL_CHOICE_MODE_NONE)
REQUIRED = ToolChoice(mode=chat_pb2.TOOL_CHOICE_MODE_REQUIRED)


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


def generation(**fields: object) -> Generation:
    return Generation(**{"text": "once", **fields})


def settings(**fields: object) -> Generation:
    return generation(settings=Settings(**fields))


def chat(*turns: Turn, **fields: object) -> Generation:
    return Generation(chat=Chat(messages=turns or [Turn(role="user")], **fields))


def choices(*texts: str) -> Constraint:
    return Constraint(choice=Constraint.Choice(texts=texts))


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
    settings(top_a=0.0, typical_p=1.0, min_new_tokens=0, logprobs=0, prompt_logprobs=20),
    settings(min_new_tokens=3, max_new_tokens=3, logit_bias={0: -1e38, 2**32 - 1: 0.0}),
    settings(dry=Dry(), xtc=Xtc(), mirostat=Mirostat()),
    settings(dry=Dry(multiplier=0, base=1, allowed_length=1, sequence_breakers=Breakers())),
    settings(dry=Dry(sequence_breakers=Breakers(texts=["x" * 256] * 64))),
    settings(xtc=Xtc(probability=1, threshold=0), sampler_order=0),
    # Mirostat replaces the truncations, as its comment says: no contradiction.
    settings(mirostat=Mirostat(version=1, tau=1e-3), top_k=3, top_p=0.5, min_p=0.1, top_a=0.1),
    settings(allowed_token_ids=[1, 2], banned_token_ids=[2, 3], sampler_order=2),
    settings(logit_bias=dict.fromkeys(range(MAX_BIASES), 1.0)),
    settings(constraint=Constraint(json=Constraint.AnyJson())),
    settings(constraint=choices("a", "a")),
    chat(tools=[Tool(name="f_-9")], tool_choice=ToolChoice(name="f_-9"), dialect="hermes"),
    chat(tools=[Tool(name="f"), Tool(name="g")], tool_choice=REQUIRED, parallel_tool_calls=False),
    chat(tool_choice=NONE),
    chat(Turn(role="assistant", reasoning="", tool_calls=[ToolCall(name="f")])),
    chat(Turn(role="tool", tool_call_id="c")),
    chat(template_arguments=Struct(fields={"a": Value(list_value=ListValue())})),
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
    (settings(min_new_tokens=9, max_new_tokens=8), {"settings.min_new_tokens"}),
    (
        settings(allowed_token_ids=[1, 2], banned_token_ids=[2, 1, 0]),
        {"settings.allowed_token_ids"},
    ),
    (chat(tools=[Tool()]), {"chat.tools[0].name"}),
    (chat(tools=[Tool(name="f g")]), {"chat.tools[0].name"}),
    (chat(tools=[Tool(name="x" * 65)]), {"chat.tools[0].name"}),
    (chat(tools=[Tool(name="f"), Tool(name="g"), Tool(name="f")]), {"chat.tools[2].name"}),
    (chat(tools=[Tool(name=f"f{n}") for n in range(MAX_TOOLS + 1)]), {"chat.tools"}),
    (
        chat(tools=[Tool(name="f", parameters_json_schema=" " * (MAX_SOURCE_BYTES + 1))]),
        {"chat.tools[0].parameters_json_schema"},
    ),
    (chat(tool_choice=ToolChoice()), {"chat.tool_choice.choice"}),
    (chat(tool_choice=ToolChoice(mode=9)), {"chat.tool_choice.mode"}),
    (chat(tool_choice=REQUIRED), {"chat.tool_choice.mode"}),
    (chat(tool_choice=ToolChoice(name="f")), {"chat.tool_choice.name"}),
    (
        chat(tools=[Tool(name="g")], tool_choice=ToolChoice(name="f")),
        {"chat.tool_choice.name"},
    ),
    (chat(parallel_tool_calls=True), {"chat.parallel_tool_calls"}),
    (chat(dialect="d" * 257), {"chat.dialect"}),
    (chat(Turn(role="user", tool_calls=[ToolCall(name="f")])), {"chat.messages[0].tool_calls"}),
    (
        chat(Turn(role="assistant", tool_calls=[ToolCall(id="c")])),
        {"chat.messages[0].tool_calls[0].name"},
    ),
    (chat(Turn(role="user", tool_call_id="c")), {"chat.messages[0].tool_call_id"}),
    (chat(Turn(role="tool", tool_call_id="")), {"chat.messages[0].tool_call_id"}),
    (
        chat(template_arguments=Struct(fields={"a": Value(number_value=math.nan)})),
        {"chat.template_arguments"},
    ),
    (
        chat(
            template_arguments=Struct(fields={"a": Value(list_value=ListValue(values=[Value()]))})
        ),
        {"chat.template_arguments"},
    ),
    (
        chat(template_arguments=Struct(fields={"a": Value(string_value="x" * 65_536)})),
        {"chat.template_arguments"},
    ),
    (
        Generation(
            chat=Chat(messages=[Turn(role="user")], tools=[Tool(name="f")]),
            settings=Settings(constraint=Constraint(regex="a")),
        ),
        {"settings.constraint"},
    ),
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


def test_constraint_beside_tools_that_are_not_called_is_accepted():
    message = chat(tools=[Tool(name="f")], tool_choice=NONE)
    message.settings.constraint.regex = "a"
    validate(message)


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
