"""Validates a generation by its message and, where that refuses it, by its model too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from google.protobuf.message import Message

from outrider.v1 import generation_pb2
from service.errors import FieldViolation, InvalidRequest
from service.rpc.requests import generation_request
from service.rpc.validation import validate
from service.runtime.runtime import Runtime


def validate_generation(message: Message, root: str, runtime: Runtime) -> None:
    """Accept a request message whose field `root` holds a generation.

    What the message alone shows to be wrong does not hide the ids that only the model can miss.

    Raises:
        InvalidRequest: at least one field is refused; the first violations of both kinds are named.
        UnsupportedField: all of the first are valid, but not served.
    """
    try:
        validate(message)
    except InvalidRequest as refused:
        left = _left_over(getattr(message, root), list(_below(refused.violations, root)))
        request = generation_request(left, request_id="", caller="", time_remaining=None)
        found = (
            FieldViolation(f"{root}.{each.field}", each.description)
            for each in runtime.missing_ids(request)
        )
        raise InvalidRequest(*dict.fromkeys((*refused.violations, *found))) from refused


def _below(violations: Sequence[FieldViolation], root: str) -> Iterator[list[str]]:
    """Yield the names below `root` that lead to each refused field."""
    for violation in violations:
        first, *names = (part.partition("[")[0] for part in violation.field.split("."))
        if first == root:
            yield names


def _left_over(
    generation: generation_pb2.Generation, refused: Sequence[list[str]]
) -> generation_pb2.Generation:
    """Return the model's name, the settings and the prompt's ids, without what was refused."""
    left = generation_pb2.Generation(model=generation.model, settings=generation.settings)
    if generation.WhichOneof("prompt") == "token_ids":
        left.token_ids.CopyFrom(generation.token_ids)
    for names in refused:
        match names:
            case ["settings", name, *_]:
                _clear(left.settings, name)
            case [name, *_]:
                _clear(left, name)
            case _:
                pass
    if left.WhichOneof("prompt") is None:
        left.text = ""
    return left


def _clear(message: Any, name: str) -> None:
    if name in message.DESCRIPTOR.fields_by_name:
        message.ClearField(name)
