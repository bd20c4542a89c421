"""Which dialects there are, by name."""

from pathlib import Path

import pytest

from service.errors import InvalidRequest
from service.text.dialect import PLAIN_DIALECT, Turn
from service.text.dialects.registry import DIALECTS, dialect_named
from service.text.parser import PLAIN_TEXT
from service.text.tools import Tool, ToolChoice

NAMES = (
    "plain",
    "think",
    "hermes",
    "llama3_python",
    "llama3_json",
    "mistral",
    "mistral_args",
    "deepseek_v3",
    "deepseek_v31",
    "harmony",
)
WITHOUT_CALLS = {"plain", "think"}


def test_dialects_go_by_their_own_names():
    assert NAMES == tuple(DIALECTS)
    assert all(name == dialect.name for name, dialect in DIALECTS.items())


@pytest.mark.parametrize("name", NAMES)
def test_dialect_is_found_by_its_name(name):
    assert DIALECTS[name] is dialect_named(name, "chat.dialect")


@pytest.mark.parametrize("name", ["", "Hermes", "hermes ", "llama"])
def test_unknown_name_is_refused_with_all_that_are_known(name):
    with pytest.raises(InvalidRequest) as refused:
        dialect_named(name, "chat.dialect")

    (violation,) = refused.value.violations
    assert "chat.dialect" == violation.field
    assert repr(name) in violation.description
    assert all(known in violation.description for known in NAMES)


def test_every_name_stands_in_the_contract():
    """A client learns the names from the comment of the field."""
    contract = Path("proto/outrider/v1/chat.proto").read_text()

    assert [] == [name for name in NAMES if f"`{name}`" not in contract]


@pytest.mark.parametrize("name", NAMES)
def test_only_dialects_with_calls_ask_something_of_a_turn_with_tools(name):
    turn = Turn("", (Tool("f"),), ToolChoice.REQUIRED)

    asks = DIALECTS[name].grammar(turn, None, repr) is not None

    assert asks == DIALECTS[name].writes_calls == (name not in WITHOUT_CALLS)


def test_plain_dialect_reads_text_alone():
    assert PLAIN_TEXT is DIALECTS["plain"].parser(Turn())
    assert PLAIN_DIALECT is DIALECTS["plain"]
