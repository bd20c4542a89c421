import inspect
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf.message import Message
from google.rpc import error_details_pb2
from google.rpc.status_pb2 import Status as StatusMessage

from service import errors
from service.errors import FieldViolation, InvalidRequest, OutriderError, QueueFull, Status
from service.rpc.calls import CODES
from service.rpc.errors import (
    MAX_MESSAGE_CHARACTERS,
    reason_of,
    retry_seconds,
    status_of,
    trailers,
)

# What gRPC's C core accepts of trailers by default.
SOFT_HEADER_BYTES = 8192
INSIDE = "/srv/bundle: what the prompt said"


def subclasses(kind: type[OutriderError]) -> Iterator[type[OutriderError]]:
    yield kind
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from subclasses(child)


CLASSES = tuple(subclasses(OutriderError))


def argument(parameter: inspect.Parameter) -> Any:
    """Return a value that fits a constructor's parameter."""
    by_annotation = {
        "int": 7,
        "float": 2.5,
        "tuple[str, ...]": ("a", "b"),
        "BaseException": ValueError(INSIDE),
        "FieldViolation": FieldViolation("settings.top_k", "must be positive"),
        "object": 3,
    }
    return by_annotation.get(str(parameter.annotation), INSIDE)


def instance(kind: type[OutriderError]) -> OutriderError:
    if kind.__init__ is Exception.__init__:
        return kind(INSIDE)
    parameters = inspect.signature(kind).parameters.values()
    values = {p.name: argument(p) for p in parameters if p.kind is p.KEYWORD_ONLY}
    positional = [argument(p) for p in parameters if p.kind is not p.KEYWORD_ONLY]
    return kind(*positional, **values)


def details(status: StatusMessage) -> dict[str, Message]:
    """Return each packed detail under its type's short name."""
    unpacked = {}
    for packed in status.details:
        name = packed.TypeName().rpartition(".")[2]
        message = getattr(error_details_pb2, name)()
        assert packed.Unpack(message)
        unpacked[name] = message
    return unpacked


DETAILS = {
    "InvalidRequest": {"BadRequest"},
    "UnsupportedField": {"BadRequest"},
    "NothingAllowed": {"BadRequest"},
    "ConstraintFailed": {"BadRequest"},
    "InvalidSettings": {"BadRequest"},
    "UnknownModel": {"ResourceInfo"},
    "UnknownProposer": {"ResourceInfo"},
    "DuplicateRequest": {"ResourceInfo"},
    "NoSuchRequest": {"ResourceInfo"},
    "QueueFull": {"QuotaFailure", "RetryInfo"},
    "SlowConsumer": {"QuotaFailure"},
    "NoFreeSlot": {"QuotaFailure"},
    "GrammarsBusy": {"QuotaFailure", "RetryInfo"},
    "Draining": {"RetryInfo"},
    "Starting": {"RetryInfo"},
}


def expected_details(kind: type[OutriderError]) -> set[str]:
    if issubclass(kind, errors.SettingError):
        return {"ErrorInfo", "BadRequest"}
    if kind.status is Status.FAILED_PRECONDITION:
        return {"ErrorInfo", "PreconditionFailure"}
    return {"ErrorInfo"} | DETAILS.get(kind.__name__, set())


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_error_has_its_code_reason_and_details(kind: type[OutriderError]):
    status = status_of(instance(kind), request_id="r")
    found = details(status)
    assert kind.status.value == status.code
    assert expected_details(kind) | {"RequestInfo"} == set(found)
    assert ("outrider", kind.__name__.upper()) == (
        found["ErrorInfo"].domain,
        found["ErrorInfo"].reason.replace("_", ""),
    )
    assert "r" == found["RequestInfo"].request_id


@pytest.mark.parametrize(
    "kind", [kind for kind in CLASSES if kind.status is Status.INTERNAL], ids=lambda k: k.__name__
)
def test_internal_error_shows_no_internals(kind: type[OutriderError]):
    """Case B64: no traceback, no path, nothing of what was processed."""
    status = status_of(instance(kind))
    assert INSIDE not in str(status)
    assert f"the server failed ({reason_of(instance(kind))}); its log says more" == status.message


def test_foreign_exception_is_internal_and_says_nothing():
    status = status_of(ValueError(INSIDE), request_id="r")
    assert (Status.INTERNAL.value, False) == (status.code, INSIDE in str(status))
    assert "INTERNAL" == details(status)["ErrorInfo"].reason


def test_stopped_engine_and_broken_bundle_show_no_internals():
    for error in (errors.EngineStopped(INSIDE), errors.BundleError("bad", path=INSIDE)):
        assert INSIDE not in str(status_of(error))


def test_reason_keeps_acronyms_together():
    assert "INVALID_TOP_K" == reason_of(errors.InvalidTopK(-1))
    assert "QUEUE_FULL" == reason_of(QueueFull(0, 1, 1.0))


def test_statuses_name_grpc_codes():
    expected = {status.name: status.value for status in Status}
    assert expected == {CODES[status.value].name: status.value for status in Status}
    assert set(grpc.StatusCode) == set(CODES.values())


def test_root_is_put_before_each_path():
    error = InvalidRequest(FieldViolation("text", "is bad"), FieldViolation("model", "is worse"))
    status = status_of(error, root="start")
    violations = details(status)["BadRequest"].field_violations
    assert ["start.text", "start.model"] == [violation.field for violation in violations]
    assert "start.text: is bad; start.model: is worse" == status.message


def test_settings_that_fail_in_the_middle_are_named_by_their_paths():
    both = errors.NothingAllowed(3, ("settings.constraint", "settings.banned_token_ids"))
    slow = errors.ConstraintFailed("settings.constraint", "takes too long")
    assert [
        [
            ("generation.settings.constraint", "no token is left at position 3 of the output"),
            (
                "generation.settings.banned_token_ids",
                "no token is left at position 3 of the output",
            ),
        ],
        [("generation.settings.constraint", "takes too long")],
    ] == [
        [(each.field, each.description) for each in found["BadRequest"].field_violations]
        for found in (details(status_of(error, root="generation")) for error in (both, slow))
    ]


def test_resource_is_named():
    info = details(status_of(errors.UnknownModel("m", ("a",))))["ResourceInfo"]
    assert ("model", "m") == (info.resource_type, info.resource_name)


def test_facts_travel_as_metadata():
    error = errors.SpeculationUnavailable("mtp", "no such draft")
    assert {"mode": "mtp", "reason": "no such draft"} == dict(
        details(status_of(error))["ErrorInfo"].metadata
    )


def test_retry_delay_is_in_details_and_trailer():
    error = QueueFull(8, 2, 1.25)
    status = status_of(error)
    delay = details(status)["RetryInfo"].retry_delay
    assert (1, 250_000_000) == (delay.seconds, delay.nanos)
    assert ("grpc-retry-pushback-ms", "1250") in trailers(error, status)


def test_quota_says_what_is_used_up():
    (violation,) = details(status_of(QueueFull(0, 8, 1.0)))["QuotaFailure"].violations
    assert ("outrider", "the queue is full: 0 waiting, 8 decoding") == (
        violation.subject,
        violation.description,
    )


def test_error_that_no_retry_helps_has_no_pushback():
    error = errors.Draining()
    assert retry_seconds(error) is not None
    assert retry_seconds(errors.UnknownModel("m", ())) is None
    assert 1 == len(trailers(ValueError(), status_of(ValueError())))


def test_many_violations_still_fit_a_trailer():
    """Clients cap trailers: what does not fit is counted instead."""
    many = [FieldViolation(f"settings.stops[{i}].text", "must not be empty") for i in range(10_000)]
    status = status_of(InvalidRequest(*many), root="generation", request_id="r")
    named = details(status)["BadRequest"].field_violations
    assert f"and at least {10_000 - len(named) + 1} more like it" == named[-1].description
    assert MAX_MESSAGE_CHARACTERS == len(status.message)
    assert SOFT_HEADER_BYTES > status.ByteSize() + len(status.message.encode())


def test_long_list_hides_no_other_field_in_a_trailer():
    many = [FieldViolation(f"settings.stops[{i}].text", "must not be empty") for i in range(1000)]
    status = status_of(InvalidRequest(*many, FieldViolation("text", "is bad")), root="start")
    fields = [each.field for each in details(status)["BadRequest"].field_violations]
    assert ["start.settings.stops[0].text", "start.text"] == fields[:2]
    assert status.message.startswith("start.settings.stops[0].text: must not be empty; start.text:")


def test_long_names_still_fit_a_trailer():
    error = errors.UnknownModel("m" * 100_000, ("a",))
    assert SOFT_HEADER_BYTES > status_of(error, request_id="r" * 100_000).ByteSize()
