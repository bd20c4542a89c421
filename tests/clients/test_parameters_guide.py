"""The guide to the parameters leaves none out: keyed by the contract's own descriptors."""

import re

import pytest

from outrider.v1.generation_pb2 import SpeculationOffReason
from outrider.v1.settings_pb2 import Constraint, GenerationSettings, SequenceBreakers
from service.text.dialects.registry import DIALECTS
from tests.clients.guide import ROOT, commands, parameters, sent

ROW = re.compile(r"^\| `([a-z_.]+)` \|", re.MULTILINE)
TEXT = (ROOT / "docs/parameters.md").read_text()

GROUPS = {
    "token_ids",
    "settings.constraint",
    "settings.constraint.choice",
    "settings.dry.sequence_breakers",
    "chat.tool_choice",
}
"""Messages around one list or one choice, which has the row."""


def test_every_parameter_has_its_row():
    assert parameters() - GROUPS == set(ROW.findall(TEXT))


def test_no_parameter_has_two_rows():
    rows = ROW.findall(TEXT)
    assert sorted(set(rows)) == sorted(rows)


def test_every_dialect_is_named():
    dialects = re.search(r"^Dialects: (.*?)\n\n", TEXT, re.MULTILINE | re.DOTALL)
    assert dialects is not None
    assert set(DIALECTS) == set(re.findall(r"`([a-z0-9_]+)`", dialects[1]))


def test_every_reason_for_no_speculation_is_explained():
    """But the one that is not used yet."""
    wire = set(SpeculationOffReason.keys()) - {
        "SPECULATION_OFF_REASON_UNSPECIFIED",
        "SPECULATION_OFF_REASON_UNPROFITABLE",
    }
    assert wire == set(re.findall(r"^\| (SPECULATION_OFF_\w+) \|", TEXT, re.MULTILINE))


def test_every_parameter_is_sent_by_a_command_that_runs():
    """A field that is new in the contract needs one; those commands are tests, too."""
    every = commands("grpcurl.md") + commands("parameters.md")
    shown = {
        path for command in every for message in command.generations() for path in sent(message)
    }
    assert set() == parameters() - shown


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (GenerationSettings(top_k=0), {"top_k"}),
        (GenerationSettings(logit_bias={1: 2.0}), {"logit_bias"}),
        (
            GenerationSettings(constraint=Constraint(choice=Constraint.Choice(texts=["a"]))),
            {"constraint", "constraint.choice", "constraint.choice.texts"},
        ),
        (SequenceBreakers(), set()),
    ],
)
def test_parameters_that_a_message_sends_are_found(message, expected: set):
    """An explicit zero is sent; what is left out is not."""
    assert expected == sent(message)
