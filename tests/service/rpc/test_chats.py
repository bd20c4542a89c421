"""Conversations from the wire."""

import pytest
from google.protobuf.struct_pb2 import Struct

from outrider.v1 import chat_pb2
from service.rpc.chats import CHOICE_MODES, chat_prompt, plain_values
from service.runtime.request import ChatPrompt
from service.text.conversation import ChatMessage
from service.text.tools import NamedTool, Tool, ToolCall, ToolChoice

Chat = chat_pb2.Chat
Turn = chat_pb2.ChatMessage


def test_turns_arrive_in_order_and_what_is_absent_is_none():
    turns = [Turn(role="system", content="a"), Turn(role="user")]
    expected = ChatPrompt((ChatMessage("system", "a"), ChatMessage("user", "")))
    assert expected == chat_prompt(Chat(messages=turns))


def test_every_field_of_a_conversation_arrives():
    call = chat_pb2.ToolCall(id="c1", name="f", arguments_json='{"x": 1}')
    message = Chat(
        messages=[
            Turn(role="assistant", content="", reasoning="hm", tool_calls=[call]),
            Turn(role="tool", content="2", tool_call_id="c1"),
        ],
        tools=[chat_pb2.Tool(name="f", description="d", parameters_json_schema="{}")],
        tool_choice=chat_pb2.ToolChoice(name="f"),
        parallel_tool_calls=False,
        template_arguments=Struct(),
        dialect="hermes",
    )
    message.template_arguments.update({"enable_thinking": False})
    expected = ChatPrompt(
        messages=(
            ChatMessage("assistant", "", "hm", (ToolCall("c1", "f", '{"x": 1}'),)),
            ChatMessage("tool", "2", tool_call_id="c1"),
        ),
        tools=(Tool("f", "d", "{}"),),
        tool_choice=NamedTool("f"),
        parallel_tool_calls=False,
        template_arguments={"enable_thinking": False},
        dialect="hermes",
    )
    assert expected == chat_prompt(message)


def test_empty_reasoning_is_not_its_absence():
    """Case B58."""
    present, absent = (
        chat_prompt(Chat(messages=[Turn(role="assistant", reasoning=given)])).messages[0].reasoning
        for given in ("", None)
    )
    assert ("", None) == (present, absent)


@pytest.mark.parametrize(("given", "expected"), [(None, True), (True, True), (False, False)])
def test_calls_are_parallel_unless_it_is_said_otherwise(given, expected):
    assert expected is chat_prompt(Chat(parallel_tool_calls=given)).parallel_tool_calls


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (chat_pb2.TOOL_CHOICE_MODE_UNSPECIFIED, None),
        (chat_pb2.TOOL_CHOICE_MODE_AUTO, ToolChoice.AUTO),
        (chat_pb2.TOOL_CHOICE_MODE_NONE, ToolChoice.NONE),
        (chat_pb2.TOOL_CHOICE_MODE_REQUIRED, ToolChoice.REQUIRED),
    ],
)
def test_every_mode_of_choice_arrives(mode: int, expected: ToolChoice | None):
    assert expected is chat_prompt(Chat(tool_choice=chat_pb2.ToolChoice(mode=mode))).tool_choice


def test_every_mode_of_the_contract_is_known():
    assert set(chat_pb2.ToolChoiceMode.values()) == set(CHOICE_MODES)


def test_whole_numbers_are_integers_to_a_template():
    """JSON on the wire has doubles alone; `2.0` in a prompt is not what was meant by 2."""
    struct = Struct()
    struct.update({"a": 2, "b": 2.5, "c": [1, {"d": -3}], "e": True, "f": None, "g": "1"})
    expected = {"a": 2, "b": 2.5, "c": [1, {"d": -3}], "e": True, "f": None, "g": "1"}
    told = plain_values(struct)
    assert expected == told
    assert [int, float, bool] == [type(told[name]) for name in ("a", "b", "e")]


def test_number_beyond_exact_integers_stays_a_double():
    """As an integer, 1e300 would be 301 digits, most of them never sent."""
    struct = Struct()
    struct.update({"a": 1e300})
    assert float is type(plain_values(struct)["a"])
