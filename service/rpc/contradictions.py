"""What the fields of one message must satisfy together: what must be set, what excludes what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from outrider.v1 import chat_pb2, settings_pb2

Complaint = tuple[str, str]


def _start_or_cancel(message: Any) -> Iterator[Complaint]:
    if not message.request_id:
        yield "request_id", "must not be empty"
    if message.WhichOneof("action") is None:
        yield "action", "start or cancel must be set"


def _generation(message: Any) -> Iterator[Complaint]:
    if not message.HasField("generation"):
        yield "generation", "must be set"


def _whole(message: Any) -> Iterator[Complaint]:
    if message.WhichOneof("prompt") is None:
        yield "prompt", "text, token_ids or chat must be set"
    chat = message.chat
    if message.settings.HasField("constraint") and chat.tools and not _calls_nothing(chat):
        yield "settings.constraint", "contradicts chat.tools, unless chat.tool_choice is none"


def _calls_nothing(chat: Any) -> bool:
    return bool(chat.tool_choice.mode == chat_pb2.TOOL_CHOICE_MODE_NONE)


def _ids(message: Any) -> Iterator[Complaint]:
    if not message.ids:
        yield "ids", "must not be empty"


def _chat(message: Any) -> Iterator[Complaint]:
    if not message.HasField("chat"):
        yield "chat", "must be set"


def _conversation(message: Any) -> Iterator[Complaint]:
    if not message.messages:
        yield "messages", "must not be empty"
    yield from _tool_names(message.tools)
    choice = message.tool_choice
    if choice.name and all(choice.name != tool.name for tool in message.tools):
        yield "tool_choice.name", f"no tool is named {choice.name!r}"
    if choice.mode == chat_pb2.TOOL_CHOICE_MODE_REQUIRED and not message.tools:
        yield "tool_choice.mode", "requires a call, but there are no tools"
    if message.HasField("parallel_tool_calls") and not message.tools:
        yield "parallel_tool_calls", "says how tools are called, but there are none"


def _tool_names(tools: Any) -> Iterator[Complaint]:
    seen: set[str] = set()
    for index, tool in enumerate(tools):
        if not tool.name:
            yield f"tools[{index}].name", "must not be empty"
        elif tool.name in seen:
            yield f"tools[{index}].name", f"is the name of another tool, {tool.name!r}"
        seen.add(tool.name)


def _turn(message: Any) -> Iterator[Complaint]:
    if not message.role:
        yield "role", "must not be empty"
    if message.tool_calls and message.role != "assistant":
        yield "tool_calls", f"belong to an assistant's turn, not to one of role {message.role!r}"
    if message.HasField("reasoning") and message.role != "assistant":
        yield "reasoning", f"belongs to an assistant's turn, not to one of role {message.role!r}"
    if message.HasField("tool_call_id") and message.role != "tool":
        yield "tool_call_id", f"belongs to a tool's turn, not to one of role {message.role!r}"


def _tool_call(message: Any) -> Iterator[Complaint]:
    if not message.name:
        yield "name", "must not be empty"


def _tool_choice(message: Any) -> Iterator[Complaint]:
    if message.WhichOneof("choice") is None:
        yield "choice", "mode or name must be set"


def _stop(message: Any) -> Iterator[Complaint]:
    if message.WhichOneof("stop") is None:
        yield "stop", "text or token_id must be set"


def _sampling(message: Any) -> Iterator[Complaint]:
    if message.do_sample and message.HasField("temperature") and message.temperature == 0.0:
        yield "temperature", "must be above 0 when do_sample is true"
    least, most = message.min_new_tokens, message.max_new_tokens
    if message.HasField("max_new_tokens") and least > most >= 1:
        yield "min_new_tokens", f"is {least}, above max_new_tokens, {most}"
    allowed = set(message.allowed_token_ids)
    if allowed and allowed.issubset(message.banned_token_ids):
        yield "allowed_token_ids", "are all banned by banned_token_ids"


def _constraint(message: Any) -> Iterator[Complaint]:
    if message.WhichOneof("constraint") is None:
        yield "constraint", "json, json_schema, regex, lark or choice must be set"


def _choices(message: Any) -> Iterator[Complaint]:
    if not message.texts:
        yield "texts", "must not be empty"


def _no_speculation(message: Any) -> Iterator[Complaint]:
    if message.mode != settings_pb2.SPECULATION_MODE_NONE:
        return
    for field in ("proposer", "num_speculative_tokens"):
        if message.HasField(field):
            yield field, "contradicts SPECULATION_MODE_NONE"


CONTRADICTIONS: Mapping[str, Callable[[Any], Iterator[Complaint]]] = {
    "outrider.v1.GenerateRequest": _start_or_cancel,
    "outrider.v1.StreamGenerateRequest": _generation,
    "outrider.v1.CompleteRequest": _generation,
    "outrider.v1.Generation": _whole,
    "outrider.v1.TokenIds": _ids,
    "outrider.v1.Chat": _conversation,
    "outrider.v1.ChatMessage": _turn,
    "outrider.v1.ToolChoice": _tool_choice,
    "outrider.v1.ToolCall": _tool_call,
    "outrider.v1.Stop": _stop,
    "outrider.v1.GenerationSettings": _sampling,
    "outrider.v1.Constraint": _constraint,
    "outrider.v1.Constraint.Choice": _choices,
    "outrider.v1.SpeculationSettings": _no_speculation,
    "outrider.v1.RenderChatRequest": _chat,
}
