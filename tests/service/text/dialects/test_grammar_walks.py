"""Whatever a grammar permits, its dialect's parser reads as what was asked for."""

import json
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.text.dialect import reading
from service.text.dialects.registry import DIALECTS
from service.text.tools import NamedTool, ToolChoice
from tests.service.text.dialects.test_grammars import CALLS, REASONED, SCHEMAS, TEXT, TOOLS, turn
from tests.service.text.dialects.walks import hear, tokenizer_with, walk


def check_calls(heard, choice, *, parallel):
    """Hold what is heard of an output against the choice of tools."""
    assert len(heard.calls) == heard.ended
    for name, arguments in heard.calls:
        found = json.loads(arguments)
        assert set(SCHEMAS[name].get("required", ())) <= set(found)
        assert set(found) <= set(SCHEMAS[name].get("properties", ()))
    if isinstance(choice, NamedTool):
        assert [choice.name] == [name for name, _ in heard.calls]
    elif choice is ToolChoice.REQUIRED:
        assert heard.calls
    if not parallel:
        assert len(heard.calls) <= 1


@pytest.mark.parametrize("name", CALLS)
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    special=st.booleans(),
    parallel=st.booleans(),
    choice=st.sampled_from([ToolChoice.REQUIRED, *(NamedTool(tool.name) for tool in TOOLS)]),
)
def test_whatever_a_required_call_may_be_is_read_as_calls(name, seed, special, parallel, choice):
    dialect, asked = DIALECTS[name], turn(choice, parallel=parallel)
    tokenizer = tokenizer_with(*dialect.markers) if special else tokenizer_with()
    language = reading(dialect, asked, None, tokenizer.vocabulary).language

    tokens = walk(language, tokenizer, Random(seed), ways=dialect.markers)

    heard = hear(dialect, asked, tokenizer, tokens)
    check_calls(heard, choice, parallel=parallel)
    assert "" == heard.text
    assert heard.calls


@pytest.mark.parametrize("name", CALLS)
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    special=st.booleans(),
    asked=st.builds(
        turn, st.sampled_from([ToolChoice.AUTO, ToolChoice.NONE]), parallel=st.booleans()
    ),
    start=st.sampled_from(["", "text", "reasoned", "call"]),
)
def test_whatever_a_free_turn_may_be_is_read_without_error(name, seed, special, asked, start):
    dialect, choice = DIALECTS[name], asked.choice
    tokenizer = tokenizer_with(*dialect.markers) if special else tokenizer_with()
    language = reading(dialect, asked, None, tokenizer.vocabulary).language
    trigger = CALLS[name][: CALLS[name].index("get")]
    starts = {"text": TEXT[name], "reasoned": REASONED.get(name, "")}
    begins = {**starts, "call": trigger if choice is ToolChoice.AUTO else ""}.get(start, "")

    tokens = walk(language, tokenizer, Random(seed), begins, dialect.markers)

    heard = hear(dialect, asked, tokenizer, tokens)
    check_calls(heard, choice, parallel=asked.parallel)
    assert not any(marker in heard.text for marker in dialect.markers)
    if choice is ToolChoice.NONE:
        assert () == heard.calls
    elif start == "call":
        assert heard.calls
