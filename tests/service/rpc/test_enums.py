from collections.abc import Mapping
from enum import Enum

import pytest

from outrider.v1 import capability_pb2, generation_pb2, settings_pb2, statistics_pb2
from service.generation.finish import FinishReason
from service.rpc.enums import (
    CANCELLATIONS,
    DRAFT_SOURCES,
    FINISH_REASONS,
    OFF_REASONS,
    SPECULATION_MODES,
    TOKEN_SOURCES,
    TOPOLOGIES,
    inverse,
)
from service.runtime.request import SpeculationMode, SpeculationOffReason
from service.speculation.capability import DraftSource, ExecutionTopology
from service.speculation.completion import CompletionCancellation
from service.speculation.round import TokenSource

TABLES = (
    (FinishReason, generation_pb2.FinishReason, FINISH_REASONS),
    (TokenSource, generation_pb2.TokenSource, TOKEN_SOURCES),
    (SpeculationMode, settings_pb2.SpeculationMode, SPECULATION_MODES),
    (SpeculationOffReason, generation_pb2.SpeculationOffReason, OFF_REASONS),
    (DraftSource, capability_pb2.DraftSource, DRAFT_SOURCES),
    (ExecutionTopology, statistics_pb2.ExecutionTopology, TOPOLOGIES),
    (CompletionCancellation, statistics_pb2.CompletionCancellation, CANCELLATIONS),
)

# Values that the contract has and this server never gives.
UNUSED = {SpeculationOffReason: {generation_pb2.SPECULATION_OFF_REASON_UNPROFITABLE}}


@pytest.mark.parametrize(
    ("portable", "wire", "table"), TABLES, ids=[case[0].__name__ for case in TABLES]
)
def test_table_names_every_value_of_both_sides(portable: type[Enum], wire, table: Mapping):
    """Each portable member has the wire value that ends with its name, and none is left over."""
    prefix = wire.DESCRIPTOR.values_by_number[0].name.removesuffix("UNSPECIFIED")
    expected = {member: wire.Value(prefix + member.name) for member in portable}
    assert expected == dict(table)
    assert set(wire.values()) - {0} == set(table.values()) | UNUSED.get(portable, set())


def test_inverse_reads_the_table_from_the_wire():
    assert {2: "a", 3: "b"} == inverse({"a": 2, "b": 3})
