import re
from dataclasses import fields

import pytest

from outrider import Chat, Message, Tool, ToolCall
from outrider.chats import chat_message
from outrider.v1 import chat_pb2

WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}}
CALL = ToolCall("c1", "weather", '{"city": "Prague"}')


def names(portable: type) -> set[str]:
    return {field.name for field in fields(portable)}


@pytest.mark.parametrize(
    ("portable", "message", "renamed"),
    [
        (Chat, chat_pb2.Chat, {}),
        (Message, chat_pb2.ChatMessage, {}),
        (ToolCall, chat_pb2.ToolCall, {}),
        (Tool, chat_pb2.Tool, {"parameters": "parameters_json_schema"}),
    ],
)
def test_every_field_of_the_contract_has_its_own(portable, message, renamed):
    assert set(message.DESCRIPTOR.fields_by_name) == {
        renamed.get(name, name) for name in names(portable)
    }


def test_turns_alone_say_nothing_else():
    turns = [Message("user", "hi"), {"role": "assistant", "content": "ho"}]
    expected = chat_pb2.Chat(
        messages=[
            chat_pb2.ChatMessage(role="user", content="hi"),
            chat_pb2.ChatMessage(role="assistant", content="ho"),
        ]
    )
    assert expected == chat_message(Chat(turns))


@pytest.mark.parametrize(
    "turns",
    [
        [
            Message("assistant", reasoning="hm", tool_calls=[CALL]),
            Message("tool", "12", tool_call_id="c1"),
        ],
        [
            {
                "role": "assistant",
                "reasoning": "hm",
                "tool_calls": [
                    {"id": "c1", "name": "weather", "arguments_json": CALL.arguments_json}
                ],
            },
            {"role": "tool", "content": "12", "tool_call_id": "c1"},
        ],
    ],
    ids=["dataclasses", "mappings"],
)
def test_calls_and_their_results_are_turns(turns: list):
    asking, answering = chat_message(Chat(turns)).messages
    call = chat_pb2.ToolCall(id="c1", name="weather", arguments_json=CALL.arguments_json)
    assert chat_pb2.ChatMessage(role="assistant", reasoning="hm", tool_calls=[call]) == asking
    assert chat_pb2.ChatMessage(role="tool", content="12", tool_call_id="c1") == answering


@pytest.mark.parametrize(
    "tool",
    [
        Tool("weather", "of a city", WEATHER),
        {"name": "weather", "description": "of a city", "parameters": WEATHER},
    ],
    ids=["dataclass", "mapping"],
)
def test_tool_is_sent_with_its_schema(tool: Tool | dict):
    (sent,) = chat_message(Chat([], [tool])).tools
    schema = '{"type": "object", "properties": {"city": {"type": "string"}}}'
    expected = chat_pb2.Tool(name="weather", description="of a city", parameters_json_schema=schema)
    assert expected == sent


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("auto", chat_pb2.ToolChoice(mode=chat_pb2.TOOL_CHOICE_MODE_AUTO)),
        ("none", chat_pb2.ToolChoice(mode=chat_pb2.TOOL_CHOICE_MODE_NONE)),
        ("required", chat_pb2.ToolChoice(mode=chat_pb2.TOOL_CHOICE_MODE_REQUIRED)),
        ({"name": "weather"}, chat_pb2.ToolChoice(name="weather")),
    ],
)
def test_choice_is_a_mode_or_a_name(choice, expected: chat_pb2.ToolChoice):
    assert expected == chat_message(Chat([], tool_choice=choice)).tool_choice


def test_false_and_further_arguments_are_sent():
    chat = Chat(
        [],
        parallel_tool_calls=False,
        template_arguments={"enable_thinking": True, "depth": 2},
        dialect="hermes",
    )
    message = chat_message(chat)
    assert (True, False, "hermes") == (
        message.HasField("parallel_tool_calls"),
        message.parallel_tool_calls,
        message.dialect,
    )
    assert {"enable_thinking": True, "depth": 2} == dict(message.template_arguments)


def test_arguments_of_a_call_are_read():
    assert {"city": "Prague"} == CALL.arguments


@pytest.mark.parametrize(
    ("chat", "told"),
    [
        (Chat("Hi"), "messages: must list its values, not be one str"),
        (Chat(["Hi"]), "messages[0]: must be a Message or a mapping, not str"),
        (Chat([{"role": "user", "rôle": "x"}]), "messages[0]: has no rôle; its keys are role"),
        (
            Chat([Message("user"), Message("user", [{"type": "text"}])]),
            "messages[1]: content: must be a text, not list",
        ),
        (
            Chat([Message("assistant", tool_calls=[{"function": {}}])]),
            "messages[0]: tool_calls[0]: has no function; its keys are id, name, arguments_json",
        ),
        (Chat([], Tool("f")), "tools: must list its values, not be one Tool"),
        (Chat([], [{"type": "function"}]), "tools[0]: has no type; its keys are name"),
        (Chat([], template_arguments=5), "template_arguments=5: "),
    ],
)
def test_what_has_another_shape_is_told_by_its_place(chat: Chat, told: str):
    with pytest.raises(TypeError, match=f"^{re.escape(told)}"):
        chat_message(chat)


@pytest.mark.parametrize(
    ("chat", "told"),
    [
        (
            Chat([], tool_choice="weather"),
            "tool_choice='weather': must be one of auto, none, required; a tool is chosen by ",
        ),
        (Chat([], tool_choice={"type": "function"}), "tool_choice={'type': 'function'}: "),
        (Chat([], template_arguments={"a": {1}}), "template_arguments={'a': {1}}: "),
    ],
)
def test_value_that_does_not_fit_is_told_by_its_place(chat: Chat, told: str):
    with pytest.raises(ValueError, match=f"^{re.escape(told)}"):
        chat_message(chat)
