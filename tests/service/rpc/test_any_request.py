"""Whatever a request holds, it is accepted and converted, or its fields are named."""

import math
import re

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.json_format import ParseDict
from google.protobuf.message import DecodeError, Message
from google.protobuf.struct_pb2 import Struct
from hypothesis import given
from hypothesis import strategies as st

from outrider.v1.generation_pb2 import Generation
from outrider.v1.generation_service_pb2 import CompleteRequest
from service.errors import FieldViolation, InvalidRequest, UnsupportedField
from service.rpc.requests import generation_request
from service.rpc.validation import validate
from service.runtime.request import GenerationRequest

PATH = re.compile(r"[a-z_]+(\[\d+\])?(\.[a-z_]+(\[\d+\])?)*")
EDGES = [0, 1, -1, 2, 20, 21, 65, 2**31 - 1, -(2**31)]
WHOLE = st.sampled_from(EDGES)
NATURAL = st.sampled_from([edge for edge in EDGES if edge >= 0])
SCALARS = {
    FieldDescriptor.CPPTYPE_BOOL: st.booleans(),
    FieldDescriptor.CPPTYPE_DOUBLE: st.sampled_from(
        [0.0, -0.0, 1e-46, 0.5, 1.0, 1.5, -1.0, 1e39, math.inf, math.nan]
    ),
    FieldDescriptor.CPPTYPE_INT32: WHOLE,
    FieldDescriptor.CPPTYPE_INT64: WHOLE,
    FieldDescriptor.CPPTYPE_UINT32: NATURAL,
    FieldDescriptor.CPPTYPE_UINT64: NATURAL,
    FieldDescriptor.CPPTYPE_ENUM: st.integers(0, 4),
    FieldDescriptor.CPPTYPE_STRING: st.sampled_from(
        ["", "a", "f", "user", "tool", "é\x00", "x" * 300]
    ),
}


def messages(kind: type[Message]) -> st.SearchStrategy[Message]:
    """Return any message of a kind: a few of its fields, each at some edge."""
    if kind is Struct:
        return st.sampled_from([Struct(), ParseDict({"a": 1.0, "b": [None, {"c": "d"}]}, Struct())])
    fields = {field.name: values(field) for field in kind.DESCRIPTOR.fields}
    if not fields:
        return st.just(kind())
    few = st.lists(st.sampled_from(sorted(fields)), unique=True, max_size=3)
    chosen = few.flatmap(lambda names: st.fixed_dictionaries({n: fields[n] for n in names}))
    return chosen.map(lambda given: built(kind, given))


def values(field: FieldDescriptor) -> st.SearchStrategy[object]:
    if is_map(field.message_type):
        return st.dictionaries(NATURAL, SCALARS[FieldDescriptor.CPPTYPE_DOUBLE], max_size=2)
    if field.message_type is None:
        one = SCALARS[field.cpp_type]
    else:
        one = messages(field.message_type._concrete_class)
    return st.lists(one, max_size=2) if field.is_repeated else one


def is_map(kind: Descriptor | None) -> bool:
    return kind is not None and kind.GetOptions().map_entry


def built(kind: type[Message], given: dict[str, object]) -> Message:
    """Return a message of these fields; of a oneof, the last one stays."""
    message = kind()
    for name, value in given.items():
        message.MergeFrom(kind(**{name: value}))
    return message


def refusal(message: Message) -> tuple[FieldViolation, ...]:
    try:
        validate(message)
    except (InvalidRequest, UnsupportedField) as refused:
        return refused.violations
    return ()


@given(messages(Generation))
def test_any_request_is_converted_or_refused_by_paths(message: Generation):
    if message.WhichOneof("prompt") is None:
        message.text = "a"
    violations = refusal(CompleteRequest(generation=message))
    for violation in violations:
        assert PATH.fullmatch(violation.field)
        assert violation.field.startswith("generation")
        assert violation.description
    if not violations:
        portable = generation_request(message, request_id="r", caller="c", time_remaining=None)
        assert isinstance(portable, GenerationRequest)


@given(st.binary(max_size=60))
def test_any_bytes_that_are_a_message_are_accepted_or_refused(data: bytes):
    message = CompleteRequest()
    try:
        message.ParseFromString(data)
    except DecodeError:
        return
    assert all(violation.field for violation in refusal(message))
