"""Validates a request message in one place, before any work, and names every violation at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from service.errors import FieldViolation, InvalidRequest, UnsupportedField
from service.rpc.contradictions import CONTRADICTIONS
from service.rpc.rules import RULES, UNSERVED, Rule

NOT_SERVED = "is not served yet"
NOT_KNOWN = "is a field that this server does not know"


@dataclass(frozen=True, slots=True)
class _Finding:
    field: str
    description: str
    is_unserved: bool = False

    @property
    def violation(self) -> FieldViolation:
        return FieldViolation(self.field, self.description)


def validate(message: Message) -> None:
    """Accept a request message whole.

    Raises:
        InvalidRequest: at least one field is refused; every violation is named.
        UnsupportedField: all is valid, but some fields are not served.
    """
    findings = tuple(_findings(message, ""))
    if not findings:
        return
    violations = [finding.violation for finding in findings]
    if all(finding.is_unserved for finding in findings):
        raise UnsupportedField(*violations)
    raise InvalidRequest(*violations)


def _findings(message: Message, path: str) -> Iterator[_Finding]:
    """Yield what is wrong with a message that lies at `path`, depth first."""
    name = message.DESCRIPTOR.full_name
    unknown = UnknownFieldSet(message)
    for index in range(len(unknown)):
        yield _Finding(f"{path}[{unknown[index].field_number}]", NOT_KNOWN, is_unserved=True)
    for field, value in message.ListFields():
        rule = RULES[name][field.name]
        yield from _field_findings(field, value, _join(path, field.name), rule)
    contradictions = CONTRADICTIONS.get(name)
    if contradictions is not None:
        for field_name, description in contradictions(message):
            yield _Finding(_join(path, field_name), description)


def _field_findings(
    field: FieldDescriptor, value: Any, path: str, rule: Rule
) -> Iterator[_Finding]:
    if rule is UNSERVED:
        yield _Finding(path, NOT_SERVED, is_unserved=True)
        return
    complaint = rule(value)
    if complaint is not None:
        yield _Finding(path, complaint)
    elif isinstance(value, Message):
        if value.DESCRIPTOR.full_name in RULES:
            yield from _findings(value, path)
    elif field.message_type is not None:
        for index, item in enumerate(value):
            yield from _findings(item, f"{path}[{index}]")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
