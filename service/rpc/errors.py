"""Every failure as a google.rpc.Status: its code, its message, and details a program can read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import takewhile

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status as StatusMessage

from service.errors import (
    BundleError,
    ConstraintFailed,
    Draining,
    DuplicateRequest,
    EngineStopped,
    FieldViolation,
    GrammarsBusy,
    InvalidRequest,
    InvalidSettings,
    NoSuchRequest,
    NothingAllowed,
    OutriderError,
    QueueFull,
    SettingError,
    SpeculationUnavailable,
    Starting,
    Status,
    UnknownModel,
    UnknownProposer,
    UnsupportedField,
)
from service.rpc.mirror import duration

DOMAIN = "outrider"
UNKNOWN_REASON = "INTERNAL"

# A status travels in HTTP/2 trailers, which peers may cap at 8 KiB.
MAX_MESSAGE_CHARACTERS = 1024
MAX_VIOLATIONS_BYTES = 3072
MAX_FACT_CHARACTERS = 128
RETRY_SECONDS = 1.0

_PLACE = re.compile(r"\[\d+\]")
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def reason_of(error: OutriderError) -> str:
    """Return the error's class name in UPPER_SNAKE: its `ErrorInfo.reason`."""
    return _WORD.sub("_", type(error).__name__).upper()


def status_of(
    error: Exception, *, request_id: str | None = None, root: str | None = None
) -> StatusMessage:
    """Return the status a client sees.

    Args:
        error: a failure that Outrider names, or any other, which shows nothing
            of what it says.
        request_id: the request concerned, if there is one.
        root: the field of the request message under which violated paths lie.
    """
    named = error if isinstance(error, OutriderError) else None
    code = Status.INTERNAL if named is None else named.status
    reason = UNKNOWN_REASON if named is None else reason_of(named)
    details: list[Message] = [_error_info(reason, named)]
    if named is not None:
        details += _details(named, root)
    if request_id is not None:
        details.append(error_details_pb2.RequestInfo(request_id=_short(request_id)))
    message = _message(reason, named, root)
    return StatusMessage(code=code.value, message=message, details=map(_packed, details))


def retry_seconds(error: Exception) -> float | None:
    """Return after how long a retry makes sense; None where it does not."""
    match error:
        case QueueFull(retry_seconds=seconds):
            return seconds
        case Draining() | GrammarsBusy() | Starting():
            return RETRY_SECONDS
        case _:
            return None


def trailers(error: Exception, status: StatusMessage) -> tuple[tuple[str, str | bytes], ...]:
    """Return the trailing metadata that carries a status."""
    details = (("grpc-status-details-bin", status.SerializeToString()),)
    seconds = retry_seconds(error)
    if seconds is None:
        return details
    return (*details, ("grpc-retry-pushback-ms", str(round(seconds * 1000))))


def _packed(message: Message) -> AnyMessage:
    packed = AnyMessage()
    packed.Pack(message)
    return packed


def _is_withheld(error: OutriderError) -> bool:
    """Whether the error's own words may show the inside of the server."""
    return error.status is Status.INTERNAL or isinstance(error, EngineStopped | BundleError)


def _message(reason: str, error: OutriderError | None, root: str | None) -> str:
    if error is None or _is_withheld(error):
        return f"the server failed ({reason}); its log says more"
    if isinstance(error, InvalidRequest | UnsupportedField):
        rooted = _rooted(error.violations, root)
        return _short(
            "; ".join(f"{v.field}: {v.description}" for v in rooted), MAX_MESSAGE_CHARACTERS
        )
    return _short(str(error), MAX_MESSAGE_CHARACTERS)


def _short(text: str, limit: int = MAX_FACT_CHARACTERS) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _error_info(reason: str, error: OutriderError | None) -> error_details_pb2.ErrorInfo:
    metadata = {} if error is None else _facts(error)
    return error_details_pb2.ErrorInfo(reason=reason, domain=DOMAIN, metadata=metadata)


def _facts(error: OutriderError) -> Mapping[str, str]:
    """Return the error's scalar attributes, unless they may show the inside of the server."""
    if _is_withheld(error):
        return {}
    return {
        name: _short(str(fact))
        for name, fact in vars(error).items()
        if isinstance(fact, str | int | float)
    }


def _details(error: OutriderError, root: str | None) -> list[Message]:
    """Return the details beside ErrorInfo that this error calls for."""
    details: list[Message] = []
    match error:
        case InvalidRequest() | UnsupportedField() | NothingAllowed() | ConstraintFailed():
            details.append(_bad_request(_rooted(error.violations, root)))
        case SettingError() | InvalidSettings():
            details.append(_bad_request([FieldViolation(error.field, str(error))]))
        case UnknownModel(model=name):
            details.append(_resource("model", name, error))
        case UnknownProposer(proposer=name):
            details.append(_resource("proposer", name, error))
        case DuplicateRequest(request_id=name) | NoSuchRequest(request_id=name):
            details.append(_resource("request", name, error))
        case _:
            pass
    if error.status is Status.FAILED_PRECONDITION:
        details.append(_precondition(error))
    if error.status is Status.RESOURCE_EXHAUSTED:
        details.append(_quota(error))
    seconds = retry_seconds(error)
    if seconds is not None:
        details.append(error_details_pb2.RetryInfo(retry_delay=duration(seconds)))
    return details


def _rooted(violations: Iterable[FieldViolation], root: str | None) -> list[FieldViolation]:
    """Return violations under a root, so ordered that a long list hides no other field."""
    above = "" if root is None else f"{root}."
    rooted = [FieldViolation(f"{above}{v.field}", v.description) for v in violations]
    occurred: Counter[str] = Counter()

    def occurrence(violation: FieldViolation) -> int:
        field = _PLACE.sub("", violation.field)
        occurred[field] += 1
        return occurred[field]

    return sorted(rooted, key=occurrence)


def _bad_request(violations: list[FieldViolation]) -> error_details_pb2.BadRequest:
    """Name every violation, or as many as fit a trailer and how many more were found."""
    size = 0

    def fits(violation: FieldViolation) -> bool:
        nonlocal size
        size += len(violation.field.encode()) + len(violation.description.encode())
        return size <= MAX_VIOLATIONS_BYTES

    named = list(takewhile(fits, violations))
    omitted = len(violations) - len(named)
    if omitted:
        more = f"and at least {omitted} more like it"
        named.append(FieldViolation(violations[len(named)].field, more))
    wire = error_details_pb2.BadRequest.FieldViolation
    return error_details_pb2.BadRequest(
        field_violations=[wire(field=v.field, description=v.description) for v in named]
    )


def _resource(kind: str, name: str, error: OutriderError) -> error_details_pb2.ResourceInfo:
    return error_details_pb2.ResourceInfo(
        resource_type=kind,
        resource_name=_short(name),
        description=_short(str(error), MAX_MESSAGE_CHARACTERS),
    )


def _precondition(error: OutriderError) -> error_details_pb2.PreconditionFailure:
    subject = error.mode if isinstance(error, SpeculationUnavailable) else DOMAIN
    wire = error_details_pb2.PreconditionFailure.Violation
    violation = wire(
        type=reason_of(error),
        subject=subject,
        description=_message(reason_of(error), error, None),
    )
    return error_details_pb2.PreconditionFailure(violations=[violation])


def _quota(error: OutriderError) -> error_details_pb2.QuotaFailure:
    wire = error_details_pb2.QuotaFailure
    description = _message(reason_of(error), error, None)
    return wire(violations=[wire.Violation(subject=DOMAIN, description=description)])
