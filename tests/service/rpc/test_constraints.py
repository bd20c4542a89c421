"""Constraints from the wire and back."""

import pytest

from outrider.v1 import settings_pb2
from service.rpc.constraints import constraint_message, constraint_of
from service.text.language import AnyJson, Choice, JsonSchema, Language, Lark, Regex

Wire = settings_pb2.Constraint

CASES = (
    (Wire(json=Wire.AnyJson()), AnyJson()),
    (Wire(json_schema='{"type": "object"}'), JsonSchema('{"type": "object"}')),
    (Wire(regex="a+"), Regex("a+")),
    (Wire(lark='start: "a"'), Lark('start: "a"')),
    (Wire(choice=Wire.Choice(texts=["b", "a"])), Choice(("b", "a"))),
)


@pytest.mark.parametrize(("wire", "language"), CASES)
def test_constraint_goes_there_and_back(wire: Wire, language: Language):
    assert (language, wire) == (constraint_of(wire), constraint_message(language))


def test_every_constraint_of_the_contract_has_a_case():
    languages = {wire.WhichOneof("constraint") for wire, _ in CASES}
    assert languages == set(Wire.DESCRIPTOR.fields_by_name)
