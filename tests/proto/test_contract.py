"""What the lint of the protos cannot see."""

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from outrider.v1 import generation_service_pb2, settings_pb2

SETTINGS = [
    settings_pb2.GenerationSettings,
    settings_pb2.DrySettings,
    settings_pb2.XtcSettings,
    settings_pb2.MirostatSettings,
    settings_pb2.SpeculationSettings,
]


@pytest.mark.parametrize("message", SETTINGS, ids=lambda m: m.DESCRIPTOR.name)
def test_settings_fields_tell_absent_from_zero(message: type) -> None:
    """Every field that is not a list or a map has presence."""
    descriptor: Descriptor = message.DESCRIPTOR
    singular = [f for f in descriptor.fields if not f.is_repeated]

    assert [] == [f.name for f in singular if not f.has_presence]


@pytest.mark.parametrize("message", SETTINGS, ids=lambda m: m.DESCRIPTOR.name)
def test_settings_counts_can_carry_a_negative_to_be_refused(message: type) -> None:
    """Only seeds and token ids are unsigned: a negative count reaches the server by its name."""
    unsigned = {FieldDescriptor.CPPTYPE_UINT32, FieldDescriptor.CPPTYPE_UINT64}
    names = {f.name for f in message.DESCRIPTOR.fields if f.cpp_type in unsigned}

    assert set() == {n for n in names if n != "seed" and not n.endswith(("token_id", "token_ids"))}


def test_generation_methods_stream_as_documented() -> None:
    """Generate streams both ways, StreamGenerate answers in a stream, Complete is unary."""
    service = generation_service_pb2.DESCRIPTOR.services_by_name["GenerationService"]

    assert {
        "Generate": (True, True),
        "StreamGenerate": (False, True),
        "Complete": (False, False),
    } == {m.name: (m.client_streaming, m.server_streaming) for m in service.methods}
