"""Which dialect a template belongs to, found by having it write what the dialect's parser reads."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from service.errors import InvalidRequest, SemanticError
from service.generation.events import (
    ReasoningDelta,
    SemanticEvent,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallEnd,
    ToolCallStart,
)
from service.generation.finish import FinishReason
from service.text.chat import ChatTemplate
from service.text.conversation import ChatMessage
from service.text.dialect import PLAIN_DIALECT, Dialect, Turn, reading
from service.text.dialects.registry import DIALECTS
from service.text.state import GeneratedText, TextRules
from service.text.tokenizer import Tokenizer
from service.text.tools import Tool, ToolCall, ToolChoice

_TOOL = Tool("probe_tool", "Probes.", '{"type": "object", "properties": {"k": {"type": "string"}}}')
_ARGUMENTS = '{"k": "v"}'
_CALLS = tuple(ToolCall(name, _TOOL.name, _ARGUMENTS) for name in ("probecall", "probecal2"))
_THOUGHT, _ANSWER = "A probing thought.", "A probing answer."
_AFTER = "."
"""What is added to a turn: behind a complete call it is text again."""
_OPENED = re.compile(r"(<think>\s*)?(</think>\s*)?$")
"""What a template may write of the reasoning before the model goes on."""


@dataclass(frozen=True, slots=True)
class _Probe:
    messages: tuple[ChatMessage, ...]
    tools: tuple[Tool, ...] = ()
    template_arguments: Mapping[str, object] = field(default_factory=dict)


_ASKED = ChatMessage("user", "A probing question.")


@dataclass(frozen=True, slots=True)
class Recogniser:
    """Probes a model's template; `ends` are the tokens that end a turn."""

    template: ChatTemplate
    tokenizer: Tokenizer
    ends: Collection[int]

    def dialect(self) -> Dialect:
        """Return the dialect of the template, `plain` where it shows none.

        It is the first whose parser reads a call, or else reasoning, out of what the template
        writes for it. A template that fails on a probe does not show what was probed.
        """
        for dialect in DIALECTS.values():
            if dialect.writes_calls and self._calls_in(dialect):
                return dialect
        think = DIALECTS["think"]
        return think if self._reasons_in(think) else PLAIN_DIALECT

    def _calls_in(self, dialect: Dialect) -> bool:
        """Whether it reads one call, or two: some templates close a turn behind the second only."""
        return any(
            _are_calls(self._events(dialect, ChatMessage("assistant", "", tool_calls=calls), tools))
            for calls in (_CALLS[:1], _CALLS)
            for tools in ((_TOOL,), ())
        )

    def _reasons_in(self, dialect: Dialect) -> bool:
        """Whether the template opens the reasoning, writes it, or takes it out of old turns."""
        opened = self._rendered(_Probe((_ASKED,)), add_generation_prompt=True)
        if opened is not None and opened.rstrip().endswith("<think>"):
            return True
        events = self._events(dialect, ChatMessage("assistant", _ANSWER, reasoning=_THOUGHT), ())
        if any(isinstance(e, ReasoningDelta) and _THOUGHT in e.text for e in events):
            return True
        old = ChatMessage("assistant", f"<think>\n{_THOUGHT}\n</think>\n\n{_ANSWER}")
        shown = self._rendered(_Probe((_ASKED, old, _ASKED)), add_generation_prompt=True)
        return shown is not None and _ANSWER in shown and _THOUGHT not in shown

    def _events(
        self, dialect: Dialect, turn: ChatMessage, tools: tuple[Tool, ...]
    ) -> tuple[SemanticEvent, ...]:
        """Return what the dialect reads in a turn as the template writes it."""
        before = self._rendered(_Probe((_ASKED,), tools), add_generation_prompt=True)
        after = self._rendered(_Probe((_ASKED, turn), tools), add_generation_prompt=False)
        if before is None or after is None:
            return ()
        prompt = next((p for p in _prompts(before) if after.startswith(p)), None)
        if prompt is None:
            return ()
        try:
            return self._read(
                dialect, Turn(prompt, (_TOOL,), ToolChoice.AUTO), after[len(prompt) :]
            )
        except SemanticError:
            return ()

    def _rendered(self, probe: _Probe, *, add_generation_prompt: bool) -> str | None:
        try:
            return self.template.render(probe, add_generation_prompt=add_generation_prompt)
        except InvalidRequest:
            return None

    def _read(self, dialect: Dialect, turn: Turn, written: str) -> tuple[SemanticEvent, ...]:
        """Read a turn by its tokens, as if the model had written it.

        A special token that is no marker of the dialect belongs to another one.
        """
        vocabulary = self.tokenizer.vocabulary
        how = reading(dialect, turn, None, vocabulary)
        silent = frozenset(self.ends)
        text = GeneratedText(
            TextRules(vocabulary, silent=silent, parser=how.parser, markers=how.markers)
        )
        for token in self.tokenizer.encode_markup(written):
            if token in vocabulary.special - silent - how.markers.keys():
                return ()
            text.push_token(token)
            if token in silent:
                break
        for token in self.tokenizer.encode_text(_AFTER, add_special=False):
            text.push_token(token)
        text.finish(FinishReason.EOS)
        return text.take_events()


def _prompts(rendered: str) -> Iterable[str]:
    """Return a prompt as it is, and without what it says of the reasoning to come."""
    return dict.fromkeys((rendered, _OPENED.sub("", rendered)))


def _are_calls(events: Iterable[SemanticEvent]) -> bool:
    """Whether the events are probing calls, all complete, and no text but what was added."""
    names: list[str] = []
    arguments: list[str] = []
    texts, ends = "", 0
    for event in events:
        match event:
            case ToolCallStart(name=name):
                names.append(name)
                arguments.append("")
            case ToolArgumentsDelta(json_fragment=fragment):
                arguments[-1] += fragment
            case ToolCallEnd():
                ends += 1
            case TextDelta(text):
                texts += text
            case _:
                pass
    if set(names) != {_TOOL.name} or ends != len(names) or texts.strip() != _AFTER:
        return False
    return all(json.loads(each) == json.loads(_ARGUMENTS) for each in arguments)
