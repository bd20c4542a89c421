"""How a prompt is read, and what the turn after a conversation must match."""

from dataclasses import replace

import pytest

from engines.scripted.vocabulary import VOCABULARY_SIZE, Special
from service.errors import InvalidRequest
from service.runtime.prompt import read_prompt
from service.runtime.request import ChatPrompt, TextPrompt, TokenPrompt
from service.runtime.text import ModelText
from service.text.chat import ChatTemplate
from service.text.conversation import ChatMessage
from service.text.dialect import Turn
from service.text.dialects.registry import DIALECTS
from service.text.language import AnyJson, Choice, Composite, JsonSchema, Regex
from service.text.parser import PLAIN_TEXT
from service.text.tools import NamedTool, Tool, ToolChoice
from tests.service.runtime.doubles import TOKENIZER, loaded_model, request

PLAIN_TEMPLATE = "{% for m in messages %}{{ m.content }}{% endfor %}"
TOOL_TEMPLATE = "{% if tools %}{{ tools | length }} tools. {% endif %}" + PLAIN_TEMPLATE
USER = ChatMessage("user", "Weather?")
WEATHER = Tool("weather", "", '{"type": "object", "properties": {"city": {"type": "string"}}}')
CLOCK = Tool("clock")


def model(template=TOOL_TEMPLATE, dialect="hermes"):
    text = ModelText("m", TOKENIZER, ChatTemplate(template, path="t"), DIALECTS[dialect])
    return loaded_model(text=text)


def read(chat, loaded=None, constraint=None):
    return read_prompt(loaded or model(), request(prompt=chat, constraint=constraint))


def refused(chat, loaded=None, constraint=None):
    with pytest.raises(InvalidRequest) as caught:
        read(chat, loaded, constraint)
    return {violation.field: violation.description for violation in caught.value.violations}


def chat(*tools, **fields):
    return ChatPrompt((USER,), tools=tools, **fields)


@pytest.mark.parametrize("prompt", [TextPrompt("a"), TokenPrompt((97,))])
def test_output_of_a_prompt_without_turns_is_text(prompt):
    """Even of a model whose turns have a dialect."""
    found = read(prompt, constraint=AnyJson())

    assert ((97,), PLAIN_TEXT, AnyJson()) == (
        found.tokens,
        found.reading.parser,
        found.reading.language,
    )


def test_conversation_is_read_in_the_models_dialect():
    found = read(chat())

    assert b"Weather?" == bytes(found.tokens)
    assert found.reading.language is None
    assert DIALECTS["hermes"].parser(Turn("Weather?")) == found.reading.parser


def test_named_dialect_takes_the_place_of_the_models_own():
    found = read(chat(dialect="plain"))

    assert PLAIN_TEXT is found.reading.parser


def test_unknown_dialect_is_refused_with_the_known_ones():
    (description,) = [refused(chat(dialect="klingon"))["chat.dialect"]]

    assert all(name in description for name in DIALECTS)


@pytest.mark.parametrize(
    ("choice", "same_as"),
    [(None, ToolChoice.AUTO), (ToolChoice.AUTO, ToolChoice.AUTO)],
)
def test_choice_is_automatic_where_there_are_tools(choice, same_as):
    found = read(chat(WEATHER, tool_choice=choice)).reading
    expected = read(chat(WEATHER, tool_choice=same_as)).reading

    assert isinstance(found.language, Composite)
    assert (expected.language, expected.parser) == (found.language, found.parser)


def test_tools_ask_something_of_the_turn_under_their_own_field():
    found = read(chat(WEATHER, tool_choice=ToolChoice.REQUIRED))

    assert "chat.tools" == found.constraint_field
    assert "@arguments_0" in found.reading.language.lark
    assert b"1 tools. Weather?" == bytes(found.tokens)


def test_constraint_of_the_request_holds_behind_the_reasoning():
    found = read(chat(), constraint=AnyJson())

    assert "settings.constraint" == found.constraint_field
    assert (("answer", AnyJson()),) == found.reading.language.parts


@pytest.mark.parametrize(
    ("constraint", "field"),
    [
        (Regex("[a-z"), "settings.constraint.regex"),
        (JsonSchema('{"type": "objekt"}'), "settings.constraint.json_schema"),
        (Choice(("a", "")), "settings.constraint.choice.texts[1]"),
    ],
)
def test_constraint_behind_the_reasoning_is_refused_under_its_own_field(constraint, field):
    assert [field] == [*refused(chat(), constraint=constraint)]


def test_constraint_of_a_model_without_reasoning_is_all_there_is():
    assert AnyJson() == read(chat(dialect="llama3_json"), constraint=AnyJson()).reading.language


def test_open_reasoning_is_found_at_the_end_of_the_prompt():
    opened = model(PLAIN_TEMPLATE + "{% if add_generation_prompt %}<think>\n{% endif %}")
    found = read(chat(), opened, constraint=Choice(("yes", "no")))

    assert found.reading.parser.is_reasoning
    assert found.reading.language.lark.startswith("start: THOUGHT_UNTIL")


@pytest.mark.parametrize(
    ("asked", "field", "part"),
    [
        (chat(tool_choice=ToolChoice.REQUIRED), "chat.tool_choice", "there are no tools"),
        (chat(tool_choice=NamedTool("x")), "chat.tool_choice.name", "no tool is named 'x'"),
        (chat(WEATHER, tool_choice=NamedTool("x")), "chat.tool_choice.name", "no tool"),
        (chat(WEATHER, CLOCK, WEATHER), "chat.tools[2].name", "earlier tool"),
        (chat(Tool("a b")), "chat.tools[0].name", "letters, digits"),
        (chat(Tool("a", "", "[]")), "chat.tools[0].parameters_json_schema", "a JSON object"),
        (
            chat(CLOCK, Tool("a", "", '{"type": "string"}')),
            "chat.tools[1].parameters_json_schema",
            'its "type" must be "object"',
        ),
        (chat(WEATHER, dialect="think"), "chat.tools", "the dialect 'think' has no tool calls"),
    ],
)
def test_contradictions_are_named_by_their_fields(asked, field, part):
    found = refused(asked)

    assert [field] == [*found]
    assert part in found[field]


def test_every_schema_that_no_grammar_can_follow_is_named():
    """In the compiler's own words, under the tool that it belongs to."""
    unknown = '{"type": "object", "properties": {"a": {"type": "string", "format": "klingon"}}}'
    empty = '{"type": "object", "properties": {"a": {"type": "objekt"}}}'
    found = refused(chat(Tool("a", "", unknown), WEATHER, Tool("b", "", empty)))

    assert ["chat.tools[0].parameters_json_schema", "chat.tools[2].parameters_json_schema"] == [
        *found
    ]
    assert "klingon" in found["chat.tools[0].parameters_json_schema"]


def test_schemas_are_no_matter_where_no_tool_is_called():
    unknown = '{"type": "object", "properties": {"a": {"type": "string", "format": "klingon"}}}'
    asked = chat(Tool("a", "", unknown), tool_choice=ToolChoice.NONE)

    assert isinstance(read(asked).reading.language, Composite)


def test_constraint_contradicts_tools_unless_none_is_called():
    found = refused(chat(WEATHER), constraint=AnyJson())
    allowed = read(chat(WEATHER, tool_choice=ToolChoice.NONE), constraint=AnyJson())

    assert {"settings.constraint": "contradicts chat.tools; set chat.tool_choice to none"} == found
    assert (("answer", AnyJson()),) == allowed.reading.language.parts


def test_tools_of_a_template_without_known_calls_are_refused():
    expected = "this model's template has no known syntax of tool calls; name one in chat.dialect"

    assert {"chat.tools": expected} == refused(chat(WEATHER), model(dialect="plain"))


def test_tools_that_the_template_does_not_show_are_refused():
    (description,) = refused(chat(WEATHER), model(PLAIN_TEMPLATE)).values()

    assert description.startswith("this model's chat template does not show tools")


def test_tools_are_taken_where_a_dialect_is_named():
    """The messages may tell the model of them, and how it calls them."""
    found = read(chat(WEATHER, dialect="mistral"), model(PLAIN_TEMPLATE, "plain"))

    assert isinstance(found.reading.language, Composite)


def test_special_tokens_are_markers_by_their_ids():
    vocabulary = replace(
        TOKENIZER.vocabulary,
        tokens=(*TOKENIZER.vocabulary.tokens, b"<tool_call>"),
        special=TOKENIZER.vocabulary.special | {VOCABULARY_SIZE},
    )
    text = ModelText(
        "m",
        replace(TOKENIZER, vocabulary=vocabulary),
        ChatTemplate(TOOL_TEMPLATE, path="t"),
        DIALECTS["hermes"],
    )
    found = read(chat(WEATHER, tool_choice=ToolChoice.REQUIRED), loaded_model(text=text))

    assert {VOCABULARY_SIZE: "<tool_call>"} == found.reading.markers
    assert f"<[{VOCABULARY_SIZE}]>" in found.reading.language.lark
    assert Special.EOS not in found.reading.markers
