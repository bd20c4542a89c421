"""A conversation as the prompt that a model expects, by the bundle's own template."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NoReturn, Protocol

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, LoopControlExtension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from service.errors import BundleError, FieldViolation, InvalidRequest

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


class ChatTurn(Protocol):
    """One message of a conversation."""

    @property
    def role(self) -> str:
        """Return who speaks, as the template knows it."""

    @property
    def content(self) -> str:
        """Return what was said."""


@dataclass(frozen=True, slots=True)
class ChatLimits:
    """Bounds of a conversation; `max_characters` holds for what goes in and what comes out."""

    max_messages: int = 4096
    max_characters: int = 16 * 1024 * 1024


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
            self._template = environment.from_string(source)
        except jinja2.TemplateSyntaxError as broken:
            message = f"line {broken.lineno}: {broken.message}"
            raise BundleError(message, path=path, field="chat_template") from broken

    def render(
        self,
        messages: Sequence[ChatTurn],
        *,
        add_generation_prompt: bool = True,
        limits: ChatLimits = ChatLimits(),
        field: str = "chat",
    ) -> str:
        """Return the prompt of a conversation, special tokens written by name.

        Raises:
            InvalidRequest: the conversation is empty, too long, has a turn without a
                role, or is refused by the template; it names the part of `field`.
        """
        if violations := _violations(messages, limits, field):
            raise InvalidRequest(*violations)
        turns = [{"role": turn.role, "content": turn.content} for turn in messages]
        pieces = self._template.generate(
            messages=turns, add_generation_prompt=add_generation_prompt
        )
        try:
            return _join(pieces, limits, field)
        except RefusedByTemplateError as refused:
            raise _refusal(field, refused.message or "the template refuses it") from refused
        except _TEMPLATE_FAILURES as failure:
            reason = f"the chat template fails on it: {str(failure) or type(failure).__name__}"
            raise _refusal(field, reason) from failure


def _violations(
    messages: Sequence[ChatTurn], limits: ChatLimits, field: str
) -> list[FieldViolation]:
    where = f"{field}.messages"
    if not messages:
        return [FieldViolation(where, "must not be empty")]
    if len(messages) > limits.max_messages:
        counted = f"at most {limits.max_messages} messages, got {len(messages)}"
        return [FieldViolation(where, counted)]
    length = sum(len(turn.role) + len(turn.content) for turn in messages)
    if length > limits.max_characters:
        return [FieldViolation(where, f"at most {limits.max_characters} characters, got {length}")]
    return [
        FieldViolation(f"{where}[{index}].role", "must not be empty")
        for index, turn in enumerate(messages)
        if not turn.role
    ]


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
