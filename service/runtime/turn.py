"""How the assistant's coming turn is to be read, and what it must match."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from service.errors import FieldViolation, InvalidRequest
from service.runtime.request import ChatPrompt
from service.runtime.request_checks import refuse
from service.runtime.text import ModelText
from service.text.dialect import Dialect, Reading, Turn
from service.text.dialects.grammars.calls import arguments_language
from service.text.language import Language
from service.text.tools import NamedTool, Tool, ToolChoice


@dataclass(frozen=True, slots=True)
class PlannedTurn:
    """What a coherent request asks of a turn, before its prompt is rendered."""

    text: ModelText
    dialect: Dialect
    turn: Turn
    answer: Language | None

    def reading(self, rendered: str) -> Reading:
        """Return the reading of the turn after a rendered conversation, whose tools are valid.

        Raises:
            InvalidRequest: no grammar can follow the schemas of some tools, of which it names each,
                or the request's own constraint.
        """
        calls = bool(self.turn.tools) and self.turn.choice is not ToolChoice.NONE
        refuse(_no_objects(self.turn.tools) if calls else ())
        turn = replace(self.turn, prompt=rendered)
        found = self.text.read(self.dialect, turn, self.answer)
        if calls and found.language is not None:
            self._require_followed(found.language)
        if self.answer is not None and self.answer != found.language:
            # Compiled alone, a language is refused under its own name, and where it is empty.
            self.text.constraint(self.answer, self.text.eos_token_ids, "settings.constraint")
        return found

    def _require_followed(self, calls: Language) -> None:
        """Compile the calls, which are kept for the output; refusals name the tools to blame."""
        try:
            self.text.constraint(calls, frozenset(), "chat.tools")
        except InvalidRequest:
            refuse(_unfollowed(self.text, self.turn.tools))
            raise


def plan_turn(text: ModelText, chat: ChatPrompt, answer: Language | None) -> PlannedTurn:
    """Resolve dialect and choice of tools; `answer` is the request's own constraint.

    Raises:
        InvalidRequest: there is no such dialect, or the request contradicts itself, the dialect or
            the model's template.
    """
    dialect = text.find_dialect(chat.dialect)
    choice = chat.tool_choice or (ToolChoice.AUTO if chat.tools else ToolChoice.NONE)
    refuse(_contradictions(chat, choice, answer))
    if chat.tools and choice is not ToolChoice.NONE:
        refuse(_uncallable(text, chat, dialect))
    return PlannedTurn(
        text, dialect, Turn("", chat.tools, choice, chat.parallel_tool_calls), answer
    )


def _contradictions(
    chat: ChatPrompt, choice: ToolChoice | NamedTool, answer: Language | None
) -> Iterator[FieldViolation]:
    names = [tool.name for tool in chat.tools]
    if isinstance(choice, NamedTool) and choice.name not in names:
        yield FieldViolation("chat.tool_choice.name", f"no tool is named {choice.name!r}")
    if choice is ToolChoice.REQUIRED and not names:
        yield FieldViolation("chat.tool_choice", "requires a call, but there are no tools")
    if answer is not None and names and choice is not ToolChoice.NONE:
        rule = "contradicts chat.tools; set chat.tool_choice to none"
        yield FieldViolation("settings.constraint", rule)


def _uncallable(text: ModelText, chat: ChatPrompt, dialect: Dialect) -> Iterator[FieldViolation]:
    """Yield why the tools could not be called; with a dialect named, messages may tell of them."""
    if chat.dialect:
        if not dialect.writes_calls:
            yield FieldViolation("chat.tools", f"the dialect {dialect.name!r} has no tool calls")
    elif not text.shows_tools:
        rule = "this model's chat template does not show tools; name a dialect in chat.dialect"
        yield FieldViolation("chat.tools", f"{rule} if the messages tell of them")
    elif not dialect.writes_calls:
        rule = "this model's template has no known syntax of tool calls; name one in chat.dialect"
        yield FieldViolation("chat.tools", rule)


def _no_objects(tools: tuple[Tool, ...]) -> Iterator[FieldViolation]:
    for index, tool in enumerate(tools):
        try:
            arguments_language(tool)
        except ValueError as refused:
            yield FieldViolation(_schema_field(index), str(refused))


def _unfollowed(text: ModelText, tools: tuple[Tool, ...]) -> Iterator[FieldViolation]:
    """Compile each schema alone, so that a refusal names its tool."""
    for index, tool in enumerate(tools):
        field = _schema_field(index)
        try:
            text.constraint(arguments_language(tool), frozenset(), field)
        except InvalidRequest as refused:
            yield from (FieldViolation(field, found.description) for found in refused.violations)


def _schema_field(index: int) -> str:
    return f"chat.tools[{index}].parameters_json_schema"
