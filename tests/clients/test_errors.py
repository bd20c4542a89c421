import grpc
import pytest
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status

from outrider import Details, OutriderError, ServerFailed, Violation
from outrider.errors import _CLASSES, error_of


class Failure:
    """A failed call."""

    def __init__(self, code: grpc.StatusCode, packed: bytes | None = None) -> None:
        self._code = code
        self._metadata = None if packed is None else (("grpc-status-details-bin", packed),)

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str | None:
        return "why"

    def trailing_metadata(self):
        return self._metadata


@pytest.mark.parametrize("code", set(grpc.StatusCode) - {grpc.StatusCode.OK})
def test_every_code_has_an_error(code: grpc.StatusCode):
    error = error_of(Failure(code))
    assert (_CLASSES.get(code, ServerFailed), code) == (type(error), error.code)
    assert f"{code.name}: why" == str(error)


def test_every_class_is_used():
    used = {*_CLASSES.values(), ServerFailed}
    assert used == set(OutriderError.__subclasses__())


def test_details_are_read():
    status = Status()
    for detail in (
        error_details_pb2.ErrorInfo(reason="R", domain="outrider", metadata={"a": "b"}),
        error_details_pb2.BadRequest(
            field_violations=[
                error_details_pb2.BadRequest.FieldViolation(field="f", description="d")
            ]
        ),
        error_details_pb2.RetryInfo(retry_delay={"seconds": 1, "nanos": 500_000_000}),
        error_details_pb2.RequestInfo(request_id="r"),
        error_details_pb2.Help(),
    ):
        status.details.add().Pack(detail)
    error = error_of(Failure(grpc.StatusCode.UNAVAILABLE, status.SerializeToString()))
    assert Details("R", {"a": "b"}, (Violation("f", "d"),), 1.5, "r") == error.details


@pytest.mark.parametrize("packed", [None, b"", b"\xff\xff"])
def test_failure_without_readable_details_has_none(packed: bytes | None):
    assert Details() == error_of(Failure(grpc.StatusCode.INTERNAL, packed)).details
