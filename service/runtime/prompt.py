"""The prompt of a request as tokens, and how the turn after it is to be read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from service.errors import FieldViolation
from service.runtime.models import LoadedModel
from service.runtime.request import (
    ChatPrompt,
    GenerationRequest,
    Prompt,
    TextPrompt,
    TokenPrompt,
)
from service.runtime.request_checks import refuse
from service.runtime.turn import plan_turn
from service.speculation.contract import Tokens
from service.text.dialect import Reading


@dataclass(frozen=True, slots=True)
class ReadPrompt:
    """A prompt, the window that it and the output share, and the reading of the output.

    `constraint_field` names what asked for `reading.language`.
    """

    tokens: Tokens
    max_context: int
    reading: Reading
    constraint_field: str = "settings.constraint"


def read_prompt(model: LoadedModel, request: GenerationRequest) -> ReadPrompt:
    """Tokenise a prompt and say how what follows it is read.

    Raises:
        InvalidRequest: it is empty, too long, or its conversation is refused.
        NoChatTemplate: a conversation was given to a model without a template.
    """
    tokens, reading = _tokens_and_reading(model, request)
    field = "chat.tools" if request.constraint is None else "settings.constraint"
    window, own = model.target.limits.max_context, request.max_context
    # One that is out of bounds is refused by its own field.
    max_context = own if own is not None and 1 <= own <= window else window
    refuse(_length_violations(request.prompt, len(tokens), max_context))
    return ReadPrompt(tokens, max_context, reading, field)


def _tokens_and_reading(model: LoadedModel, request: GenerationRequest) -> tuple[Tokens, Reading]:
    prompt = request.prompt
    plain = Reading(language=request.constraint)
    match prompt:
        case TokenPrompt(token_ids):
            return token_ids, plain
        case TextPrompt(text):
            refuse(_hopeless(model, prompt, text))
            return model.text.encode(text, add_special_tokens=False), plain
        case ChatPrompt():
            planned = plan_turn(model.text, prompt, request.constraint)
            rendered = model.text.render(prompt, max_characters=model.max_characters)
            refuse(_hopeless(model, prompt, rendered))
            return model.text.encode_rendered(rendered), planned.reading(rendered)


def _hopeless(model: LoadedModel, prompt: Prompt, text: str) -> Iterator[FieldViolation]:
    """Yield a refusal of a text that cannot fit, before seconds are spent on its tokens."""
    least, window = model.text.tokenizer.least_tokens(text), model.target.limits.max_context
    if least >= window:
        yield _too_long(_field(prompt), f"at least {least}", window)


def _length_violations(prompt: Prompt, length: int, max_context: int) -> Iterator[FieldViolation]:
    field = _field(prompt)
    if length == 0:
        yield FieldViolation(field, "must hold at least one token")
    if length >= max_context:
        yield _too_long(field, str(length), max_context)


def _too_long(field: str, length: str, max_context: int) -> FieldViolation:
    description = f"has {length} tokens and leaves no room for output in {max_context}"
    return FieldViolation(field, description)


def _field(prompt: Prompt) -> str:
    match prompt:
        case TextPrompt():
            return "text"
        case TokenPrompt():
            return "token_ids"
        case ChatPrompt():
            return "chat"
