"""Messages as a whole: those that are accepted, and fields that must agree or be set."""

import math

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import ListValue, Struct, Value

from outrider.v1 import (
    chat_pb2,
    generation_pb2,
    model_service_pb2,
    scheduler_service_pb2,
    settings_pb2,
)
from outrider.v1.generation_service_pb2 import (
    CompleteRequest,
    GenerateRequest,
    StreamGenerateRequest,
)
from service.rpc.rules import (
    MAX_BIASES,
    MAX_PROMPT_IDS,
    MAX_SOURCE_BYTES,
    MAX_TOOLS,
)
from service.rpc.validation import validate
from tests.service.rpc.asking import (
    NONE,
    REQUIRED,
    Breakers,
    Chat,
    Constraint,
    Dry,
    Generation,
    Mirostat,
    Settings,
    Speculation,
    Stop,
    Tool,
    ToolCall,
    ToolChoice,
    Turn,
    Xtc,
    chat,
    choices,
    fields_refused,
    generation,
    settings,
)

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
    (
        chat(*[Turn(role="assistant", tool_calls=[ToolCall(name="f")] * 128)] * 33),
        {"chat.messages"},
    ),
    (
        generation(token_ids=generation_pb2.TokenIds(ids=[1] * (MAX_PROMPT_IDS + 1))),
        {"token_ids.ids"},
    ),
    (chat(Turn(role="user", reasoning="hm")), {"chat.messages[0].reasoning"}),
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


def test_constraint_beside_tools_that_are_not_called_is_accepted():
    message = chat(tools=[Tool(name="f")], tool_choice=NONE)
    message.settings.constraint.regex = "a"
    validate(message)
