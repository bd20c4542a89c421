"""A conversation as the prompt that a model expects, by the bundle's own template."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import NoReturn

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, LoopControlExtension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from service.errors import BundleError, FieldViolation, InvalidRequest
from service.text.conversation import RECEIVED, Conversation, call_value, template_values
from service.text.conversation_rules import (
    USUAL_LIMITS,
    ChatLimits,
    TemplateNames,
    conversation_violations,
)
from service.text.tools import ToolCall

_TEMPLATE_FAILURES = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    jinja2.TemplateError,
)
"""What a template can raise by itself, when a conversation is not what it expects."""


class RefusedByTemplateError(jinja2.TemplateError):
    """The template itself refused the conversation, in its own words."""


class ChatTemplate:
    """A compiled chat template, sandboxed: it can reach nothing but the conversation.

    Renders as the `transformers` library does: its whitespace rules, its
    `tojson` (no HTML escapes), `strftime_now`, `raise_exception`, loop controls and the
    `generation` block. Shared by all threads.

    Raises:
        BundleError: the template does not compile; `path` names it.
    """

    def __init__(
        self,
        source: str,
        *,
        path: str,
        bos_token: str = "",
        eos_token: str = "",
        now: Callable[[], datetime] = datetime.now,
    ) -> None:
        environment = _environment(now)
        environment.globals.update(bos_token=bos_token, eos_token=eos_token)
        try:
            self._names = _names(environment, source)
            self._template = environment.from_string(source)
        except jinja2.TemplateSyntaxError as broken:
            message = f"line {broken.lineno}: {broken.message}"
            raise BundleError(message, path=path, field="chat_template") from broken
        self._silence = self._find_silence()

    @property
    def reads_tools(self) -> bool:
        """Whether the template does anything with the tools on offer."""
        return "tools" in self._names.variables

    def render(
        self,
        conversation: Conversation,
        *,
        add_generation_prompt: bool = True,
        limits: ChatLimits = USUAL_LIMITS,
        field: str = "chat",
    ) -> str:
        """Return the prompt of a conversation, special tokens written by name.

        Raises:
            InvalidRequest: the conversation is malformed or beyond the limits, has a part that the
                template would not show, or is refused by it; all are named by their paths in
                `field`.
        """
        found = conversation_violations(conversation, self._names, limits, field)
        if violations := tuple(found):
            raise InvalidRequest(*violations)
        values = template_values(conversation, self._silence)
        pieces = self._template.generate(values, add_generation_prompt=add_generation_prompt)
        try:
            return _join(pieces, limits, field)
        except RefusedByTemplateError as refused:
            raise _refusal(field, refused.message or "the template refuses it") from refused
        except _TEMPLATE_FAILURES as failure:
            reason = f"the chat template fails on it: {str(failure) or type(failure).__name__}"
            raise _refusal(field, reason) from failure

    def _find_silence(self) -> str | None:
        """Return what the template takes as the content of a turn that only calls tools.

        Some show such calls only where there is none, and some would write out the word None.
        """
        call = call_value(ToolCall("silence00", "silence", ""))
        asked = {"role": "user", "content": "-"}
        called = {"role": "assistant", "content": None, "tool_calls": [call]}
        pieces = self._template.generate(messages=[asked, called], tools=None)
        try:
            shown = _join(pieces, USUAL_LIMITS, "chat")
        except (InvalidRequest, *_TEMPLATE_FAILURES):
            return ""
        return None if "silence" in shown and "None" not in shown else ""


def _names(environment: ImmutableSandboxedEnvironment, source: str) -> TemplateNames:
    """Read off a template which names and strings it uses."""
    tree = environment.parse(source)
    constants = (constant.value for constant in tree.find_all(nodes.Const))
    return TemplateNames(
        reserved=frozenset((*RECEIVED, *environment.globals)),
        variables=frozenset(name.name for name in tree.find_all(nodes.Name) if name.ctx == "load"),
        strings=frozenset(
            (
                *(constant for constant in constants if isinstance(constant, str)),
                *(attribute.attr for attribute in tree.find_all(nodes.Getattr)),
            )
        ),
    )


def _join(pieces: Iterable[str], limits: ChatLimits, field: str) -> str:
    """Collect a rendering, and give up on one that grows without bound."""
    rendered, length = [], 0
    for piece in pieces:
        rendered.append(piece)
        length += len(piece)
        if length > limits.max_characters:
            raise _refusal(field, f"renders to more than {limits.max_characters} characters")
    return "".join(rendered)


def _refusal(field: str, description: str) -> InvalidRequest:
    return InvalidRequest(FieldViolation(f"{field}.messages", description))


def _environment(now: Callable[[], datetime]) -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[LoopControlExtension, _GenerationBlock],
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = lambda form: now().strftime(form)
    return environment


class _GenerationBlock(Extension):
    """Reads `{% generation %}`, which marks a model's words for training, as its contents."""

    tags = {"generation"}  # noqa: RUF012 - Jinja declares it so

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _raise_exception(message: str) -> NoReturn:
    raise RefusedByTemplateError(message)


def _to_json(
    value: object,
    ensure_ascii: bool = False,  # noqa: FBT001, FBT002 - templates may pass it by position
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,  # noqa: FBT001, FBT002 - as ensure_ascii
) -> str:
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )
