"""What a call can fail with: one class for each kind of status, with its details.

OutriderError
├── InvalidRequest      fields are refused; `violations` names every one
├── Unserved            a field or method that this server does not serve
├── NotFound            no such model, proposer or request
├── AlreadyExists       the request id is in use
├── NotReady            what was asked for is not ready on this server
├── Overloaded          too much is waiting, or read too slowly
├── Unavailable         no server, or one that starts, drains or broke
├── DeadlineExceeded    the timeout passed
├── Cancelled           the call was cancelled
└── ServerFailed        the server failed in a way that it does not explain
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status
from grpc import aio

_DETAILS_KEY = "grpc-status-details-bin"
_NANOSECONDS = 1e9


@dataclass(frozen=True, slots=True)
class Violation:
    """One refused field: its path in the request message, and why."""

    field: str
    description: str


@dataclass(frozen=True, slots=True)
class Details:
    """What a server says beside code and message.

    `reason` names the failure for programs, `facts` are its values, and
    `retry_seconds` is after how long a retry makes sense, None if never.
    """

    reason: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    violations: tuple[Violation, ...] = ()
    retry_seconds: float | None = None
    request_id: str = ""


class OutriderError(Exception):
    """A call failed; `code` is its gRPC status."""

    def __init__(self, code: grpc.StatusCode, message: str, details: Details) -> None:
        super().__init__(f"{code.name}: {message}")
        self.code = code
        self.message = message
        self.details = details

    @property
    def violations(self) -> tuple[Violation, ...]:
        """Return the refused fields."""
        return self.details.violations


class InvalidRequest(OutriderError):
    """Fields of the request are refused."""


class Unserved(OutriderError):
    """A field or a method exists, and this server does not serve it."""


class NotFound(OutriderError):
    """There is no such model, proposer or request."""


class AlreadyExists(OutriderError):
    """The request id belongs to a live request."""


class NotReady(OutriderError):
    """The server cannot do this as it is set up."""


class Overloaded(OutriderError):
    """Too many requests wait, or this one was read too slowly."""


class Unavailable(OutriderError):
    """There is no server, or one that does not take requests now."""


class DeadlineExceeded(OutriderError):
    """The timeout passed; what arrived before it stays valid."""


class Cancelled(OutriderError):
    """The call was cancelled."""


class ServerFailed(OutriderError):
    """The server failed; its log says more."""


_CLASSES: Mapping[grpc.StatusCode, type[OutriderError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidRequest,
    grpc.StatusCode.OUT_OF_RANGE: InvalidRequest,
    grpc.StatusCode.UNIMPLEMENTED: Unserved,
    grpc.StatusCode.NOT_FOUND: NotFound,
    grpc.StatusCode.ALREADY_EXISTS: AlreadyExists,
    grpc.StatusCode.FAILED_PRECONDITION: NotReady,
    grpc.StatusCode.RESOURCE_EXHAUSTED: Overloaded,
    grpc.StatusCode.UNAVAILABLE: Unavailable,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineExceeded,
    grpc.StatusCode.CANCELLED: Cancelled,
}


class _Failure(Protocol):
    """What both of gRPC's call errors offer."""

    def code(self) -> grpc.StatusCode: ...
    def details(self) -> str | None: ...
    def trailing_metadata(self) -> Iterable[tuple[str, str | bytes]] | None: ...


@contextmanager
def named_errors() -> Iterator[None]:
    """Raise gRPC's errors as this package's."""
    try:
        yield
    except (grpc.RpcError, aio.AioRpcError) as error:
        raise error_of(error) from error  # type: ignore[arg-type]  # a call that failed is both


def error_of(failure: _Failure) -> OutriderError:
    """Return the error of a failed call."""
    code = failure.code()
    kind = _CLASSES.get(code, ServerFailed)
    values = (v for k, v in failure.trailing_metadata() or () if k == _DETAILS_KEY)
    return kind(code, failure.details() or "", _details(next(values, None)))


def _details(packed: str | bytes | None) -> Details:
    """Read the status of the trailers; none, or a foreign one, says nothing."""
    status = Status()
    try:
        status.ParseFromString(packed if isinstance(packed, bytes) else b"")
    except DecodeError:
        return Details()
    info = error_details_pb2.ErrorInfo()
    bad = error_details_pb2.BadRequest()
    retry = error_details_pb2.RetryInfo()
    request = error_details_pb2.RequestInfo()
    found = {
        type(wanted)
        for detail in status.details
        for wanted in (info, bad, retry, request)
        if detail.Unpack(wanted)
    }
    delay = retry.retry_delay.seconds + retry.retry_delay.nanos / _NANOSECONDS
    return Details(
        reason=info.reason,
        facts=dict(info.metadata),
        violations=tuple(Violation(v.field, v.description) for v in bad.field_violations),
        retry_seconds=delay if type(retry) in found else None,
        request_id=request.request_id,
    )
