import pytest

from service.speculation.capability import (
    Declared,
    DraftSource,
    ExecutionTopology,
    Ready,
    Unavailable,
    Unsupported,
    admits_source,
    draft_source,
    is_ready_for,
)

SEPARATE, EMBEDDED = DraftSource.SEPARATE, DraftSource.EMBEDDED


def test_declared_capability_admits_preparation_without_claiming_readiness():
    declared = Declared(SEPARATE)
    assert draft_source(declared) is SEPARATE
    assert admits_source(declared, SEPARATE)
    assert not admits_source(declared, EMBEDDED)
    assert not is_ready_for(declared, SEPARATE)


def test_only_ready_capability_claims_immediate_execution():
    ready, unsupported = Ready(EMBEDDED), Unsupported(EMBEDDED, "example")
    assert admits_source(ready, EMBEDDED)
    assert is_ready_for(ready, EMBEDDED)
    assert not admits_source(unsupported, EMBEDDED)
    assert not is_ready_for(unsupported, EMBEDDED)
    assert not admits_source(Unavailable(), EMBEDDED)
    assert draft_source(Unavailable()) is None


def test_unsupported_capability_is_a_value_with_source_and_architecture():
    capability = Unsupported(EMBEDDED, "future_decoder")
    assert capability == Unsupported(DraftSource("embedded"), "future_decoder")
    assert draft_source(capability) is EMBEDDED


@pytest.mark.parametrize(
    ("topology", "people", "schema"),
    [
        (ExecutionTopology.SINGLE, "single", "single"),
        (ExecutionTopology.SAME_DEVICE_SPLIT, "same-device-split", "same_device_split"),
        (ExecutionTopology.CROSS_DEVICE_SPLIT, "cross-device-split", "cross_device_split"),
    ],
)
def test_topology_has_a_spelling_for_people_and_one_for_schemas(topology, people, schema):
    assert (people, schema) == (topology.value, topology.schema_name)
    assert ExecutionTopology(people) is topology
