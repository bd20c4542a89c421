"""Validates a request message in one place, before any work, and names its first violations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from service.errors import FieldViolation, InvalidRequest, UnsupportedField
from service.rpc.checks import Check, Each
from service.rpc.contradictions import CONTRADICTIONS
from service.rpc.rules import RULES, UNSERVED, Rule

NOT_SERVED = "is not served yet"
NOT_KNOWN = "is a field that this server does not know"

MAX_FINDINGS = 256
MAX_OF_A_LIST = 16
"""How many findings one list may have, so that they leave room for those of other fields."""
MAX_UNKNOWN_BYTES = 1024
"""How many bytes of unknown fields are named one by one: listing a megabyte takes half a second."""


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
        InvalidRequest: at least one field is refused; the first violations are named.
        UnsupportedField: all of the first are valid, but not served.
    """
    size = _unknown_bytes(message)
    if size > MAX_UNKNOWN_BYTES:
        told = f"holds {size} bytes of fields that this server does not know"
        raise UnsupportedField(FieldViolation(message.DESCRIPTOR.name, told))
    findings = tuple(islice(_findings(message, ""), MAX_FINDINGS))
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


def _unknown_bytes(message: Message) -> int:
    """Return how much of a message, and of those inside it, is unknown, in bytes."""
    known = type(message)()
    known.CopyFrom(message)
    known.DiscardUnknownFields()
    return message.ByteSize() - known.ByteSize()


def _field_findings(
    field: FieldDescriptor, value: Any, path: str, rule: Rule
) -> Iterator[_Finding]:
    if rule is UNSERVED:
        yield _Finding(path, NOT_SERVED, is_unserved=True)
        return
    complaint = rule.whole(value) if isinstance(rule, Each) else rule(value)
    if complaint is not None:
        yield _Finding(path, complaint)
    elif isinstance(rule, Each):
        yield from _some(_value_findings(value, path, rule.value), path)
    elif isinstance(value, Message):
        if value.DESCRIPTOR.full_name in RULES:
            yield from _findings(value, path)
    elif field.message_type is not None:
        yield from _some(_item_findings(value, path), path)


def _some(findings: Iterator[_Finding], path: str) -> Iterator[_Finding]:
    """Yield the first findings of a list, and whether there are more."""
    yield from islice(findings, MAX_OF_A_LIST)
    for another in islice(findings, 1):
        yield replace(another, field=path, description="holds more like these")


def _item_findings(items: Iterable[Message], path: str) -> Iterator[_Finding]:
    for index, item in enumerate(items):
        yield from _findings(item, f"{path}[{index}]")


def _value_findings(values: Any, path: str, check: Check) -> Iterator[_Finding]:
    """Yield what is wrong with the scalars of a list or, by their keys, of a map."""
    items = values.items() if isinstance(values, Mapping) else enumerate(values)
    for key, value in items:
        complaint = check(value)
        if complaint is not None:
            yield _Finding(f"{path}[{key}]", complaint)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
