"""The fields of a conversation, on a template that shows each of them to the model."""

from __future__ import annotations

from collections.abc import Mapping

from google.protobuf.struct_pb2 import Struct

from exactness.answer import Answer
from exactness.fields.asking import said
from exactness.models.staged import CUE
from exactness.proof import Proof, Shows
from outrider.v1.chat_pb2 import (
    TOOL_CHOICE_MODE_NONE,
    TOOL_CHOICE_MODE_REQUIRED,
    Chat,
    ChatMessage,
    Tool,
    ToolCall,
    ToolChoice,
)
from outrider.v1.generation_pb2 import Generation

ROOM = 160
"""Tokens enough for two calls."""

_NO_ARGUMENTS = '{"type": "object", "properties": {}, "additionalProperties": false}'
_FIRST = Tool(name="ab", parameters_json_schema=_NO_ARGUMENTS)
_SECOND = Tool(name="cd", parameters_json_schema=_NO_ARGUMENTS)
_REQUIRED = ToolChoice(mode=TOOL_CHOICE_MODE_REQUIRED)


def _events(answer: Answer) -> object:
    return answer.events


def _turns(*turns: ChatMessage, **fields: object) -> Generation:
    return said(Chat(messages=turns or (_user(),), **fields))  # type: ignore[arg-type]  # the names are the proto's


def _tools(*tools: Tool, **fields: object) -> Generation:
    return _turns(tools=tools, **fields)


def _calls(*tools: Tool, **fields: object) -> Generation:
    """Return a request that must call a tool, and whose model begins to at once."""
    asked = _turns(_user(CUE), **{"tools": tools, "tool_choice": _REQUIRED, **fields})
    asked.settings.max_new_tokens = ROOM
    return asked


def _user(content: str = "abc") -> ChatMessage:
    return ChatMessage(role="user", content=content)


def _called(**changes: str) -> Generation:
    """Return a conversation in which a tool was called and answered."""
    call = {"id": "first0000", "name": "ab", "arguments_json": '{"a": 1}', **changes}
    asked = ChatMessage(role="assistant", tool_calls=[ToolCall(**call)])
    answered = ChatMessage(role="tool", content="cab", tool_call_id=call["id"])
    return _turns(_user(), asked, answered)


def _answering(call: str) -> Generation:
    """Return a conversation with two calls, of which one was answered."""
    calls = [
        ToolCall(id=name, name="ab", arguments_json="{}") for name in ("first0000", "second000")
    ]
    asked = ChatMessage(role="assistant", tool_calls=calls)
    return _turns(_user(), asked, ChatMessage(role="tool", content="cab", tool_call_id=call))


def _variables(value: str) -> Struct:
    struct = Struct()
    struct.update({"date_string": value})
    return struct


CHAT: Mapping[str, Proof] = {
    "parallel_tool_calls": Shows(
        _calls(_FIRST, parallel_tool_calls=False),
        _calls(_FIRST, parallel_tool_calls=True),
        _events,
        "how many calls follow",
    ),
    "template_arguments": Shows(_turns(), _turns(template_arguments=_variables("ab"))),
    "dialect": Shows(
        _calls(_FIRST, dialect="hermes"),
        _calls(_FIRST, dialect="mistral"),
        _events,
        "how calls are written",
    ),
}

CHAT_MESSAGE: Mapping[str, Proof] = {
    "role": Shows(
        _turns(_user(), _user("b"), _user()),
        _turns(_user(), ChatMessage(role="assistant", content="b"), _user()),
    ),
    "content": Shows(_turns(), _turns(_user("abd"))),
    "reasoning": Shows(
        _turns(_user(), ChatMessage(role="assistant", content="b"), _user()),
        _turns(_user(), ChatMessage(role="assistant", content="b", reasoning="a"), _user()),
    ),
    "tool_call_id": Shows(_answering("first0000"), _answering("second000")),
}

TOOL: Mapping[str, Proof] = {
    "name": Shows(_calls(_FIRST), _calls(_SECOND), _events, "what is called"),
    "description": Shows(_tools(Tool(name="ab")), _tools(Tool(name="ab", description="a"))),
    "parameters_json_schema": Shows(
        _calls(_FIRST),
        _calls(Tool(name="ab", parameters_json_schema='{"enum": [{"a": 1}]}')),
        _events,
        "the arguments of a call",
    ),
}

TOOL_CHOICE: Mapping[str, Proof] = {
    "mode": Shows(
        _calls(_FIRST, tool_choice=ToolChoice(mode=TOOL_CHOICE_MODE_NONE)),
        _calls(_FIRST),
        _events,
        "whether a call follows",
    ),
    "name": Shows(
        _calls(_FIRST, _SECOND, tool_choice=ToolChoice(name="ab")),
        _calls(_FIRST, _SECOND, tool_choice=ToolChoice(name="cd")),
        _events,
        "which tool is called",
    ),
}

TOOL_CALL: Mapping[str, Proof] = {
    "id": Shows(_called(), _called(id="other0000")),
    "name": Shows(_called(), _called(name="cd")),
    "arguments_json": Shows(_called(), _called(arguments_json='{"a": 2}')),
}
