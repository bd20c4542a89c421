"""What the grammars of the dialects permit, and that the parsers read it."""

import json

import pytest

from service.text.dialect import Turn, reading
from service.text.dialects.registry import DIALECTS
from service.text.language import JsonSchema, Regex
from service.text.tools import NamedTool, Tool, ToolChoice
from tests.service.text.dialects.walks import hear, permits, tokenizer_with

TRICKY = ["</tool_call>", '"', "```", ";", "[ARGS]", "[TOOL_CALLS]", "<think>", "\\", "\n", "é😀"]
SCHEMAS = {
    "get": {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "boolean"}},
        "required": ["a"],
        "additionalProperties": False,
    },
    "get_more": {
        "properties": {"word": {"enum": TRICKY}, "nested": {"$ref": "#/$defs/nested"}},
        "required": ["word", "nested"],
        "additionalProperties": False,
        "$defs": {
            "nested": {
                "type": "object",
                "properties": {"x": {"type": "array", "items": {"type": "null"}, "maxItems": 2}},
                "required": ["x"],
                "additionalProperties": False,
            }
        },
    },
    "ping-pong": {"type": "object", "maxProperties": 0},
}
TOOLS = tuple(Tool(name, "", json.dumps(schema)) for name, schema in SCHEMAS.items())

CALLS = {
    "hermes": '<tool_call>\n{"name": "get", "arguments": {"a": 1}}\n</tool_call>',
    "llama3_json": '{"name": "get", "parameters": {"a": 1}}',
    "llama3_python": '<|python_tag|>{"name": "get", "parameters": {"a": 1}}',
    "mistral": '[TOOL_CALLS][{"name": "get", "arguments": {"a": 1}}]',
    "mistral_args": '[TOOL_CALLS]get[ARGS]{"a": 1}',
    "deepseek_v3": (
        "<\uff5ctool▁calls▁begin\uff5c><\uff5ctool▁call▁begin\uff5c>function<\uff5ctool▁sep\uff5c>"
        'get\n```json\n{"a": 1}\n```<\uff5ctool▁call▁end\uff5c><\uff5ctool▁calls▁end\uff5c>'
    ),
    "deepseek_v31": (
        "<\uff5ctool▁calls▁begin\uff5c><\uff5ctool▁call▁begin\uff5c>get<\uff5ctool▁sep\uff5c>"
        '{"a": 1}<\uff5ctool▁call▁end\uff5c><\uff5ctool▁calls▁end\uff5c>'
    ),
    "harmony": (
        '<|channel|>commentary to=functions.get <|constrain|>json<|message|>{"a": 1}<|call|>'
    ),
}
"""A call in each dialect that has any."""
SEVERAL = {
    "hermes": CALLS["hermes"] + "\n" + CALLS["hermes"],
    "llama3_json": CALLS["llama3_json"] + "; " + CALLS["llama3_json"],
    "llama3_python": CALLS["llama3_python"] + ";" + CALLS["llama3_json"],
    "mistral": CALLS["mistral"][:-1] + ', {"name": "ping-pong", "arguments": {}}]',
    "mistral_args": CALLS["mistral_args"] + "[TOOL_CALLS]ping-pong[ARGS]{}",
    "deepseek_v31": CALLS["deepseek_v31"].replace(
        "<\uff5ctool▁calls▁end\uff5c>",
        CALLS["deepseek_v31"].removeprefix("<\uff5ctool▁calls▁begin\uff5c>"),
    ),
}
REASONED = {
    "hermes": "<think>\nhm\n</think>\n\n",
    "mistral": "[THINK]hm[/THINK]",
    "mistral_args": "[THINK]hm[/THINK]",
    "deepseek_v3": "<think>\nhm\n</think>\n\n",
    "deepseek_v31": "<think>\nhm</think>",
    "harmony": "<|channel|>analysis<|message|>hm<|end|><|start|>assistant",
}
TEXT = dict.fromkeys(CALLS, "hello") | {"harmony": "<|channel|>final<|message|>hello"}
OPENED = {
    **dict.fromkeys(("hermes", "deepseek_v3", "deepseek_v31"), "<think>\n"),
    **dict.fromkeys(("mistral", "mistral_args"), "[THINK]"),
    "harmony": "<|channel|>analysis<|message|>",
}
PROMPT = {"harmony": "<|start|>user<|message|>Question?<|end|><|start|>assistant"}


def permitted(name, turn, text, *, special=False, answer=None):
    """Return whether a dialect permits a text in a turn, and whether the turn may end there."""
    dialect = DIALECTS[name]
    tokenizer = tokenizer_with(*dialect.markers) if special else tokenizer_with()
    language = reading(dialect, turn, answer, tokenizer.vocabulary).language
    return permits(language, tokenizer, text)


def turn(choice=ToolChoice.AUTO, *, parallel=True, prompt=""):
    return Turn(prompt, TOOLS, choice, parallel)


COMPLETE, BEGUN, REFUSED = (True, True), (True, False), (False, False)

both = pytest.mark.parametrize("special", [False, True], ids=["text", "tokens"])
each = pytest.mark.parametrize("name", CALLS)


@each
@both
@pytest.mark.parametrize("choice", [ToolChoice.AUTO, ToolChoice.REQUIRED, NamedTool("get")])
def test_call_is_permitted_and_ends_the_turn(name, choice, special):
    assert COMPLETE == permitted(name, turn(choice), CALLS[name], special=special)
    begun = CALLS[name][: CALLS[name].index("1}")]
    assert BEGUN == permitted(name, turn(choice), begun, special=special)


@pytest.mark.parametrize("name", REASONED)
@both
@pytest.mark.parametrize("choice", [ToolChoice.AUTO, ToolChoice.REQUIRED, NamedTool("get")])
def test_call_may_follow_the_reasoning(name, choice, special):
    reasoned = REASONED[name] + CALLS[name]

    assert COMPLETE == permitted(name, turn(choice), reasoned, special=special)


@pytest.mark.parametrize("name", OPENED)
@both
def test_reasoning_that_the_prompt_opened_must_close_first(name, special):
    opened = turn(ToolChoice.REQUIRED, prompt=PROMPT.get(name, "Question? ") + OPENED[name])
    rest = REASONED[name].removeprefix(OPENED[name]) + CALLS[name]

    assert COMPLETE == permitted(name, opened, rest, special=special)
    assert COMPLETE != permitted(name, opened, CALLS[name], special=special)


@each
@both
def test_automatic_choice_permits_text_alone(name, special):
    assert COMPLETE == permitted(name, turn(), TEXT[name], special=special)


@pytest.mark.parametrize("name", [name for name in CALLS if name != "llama3_json"])
@both
def test_text_may_precede_a_call(name, special):
    """Except in the dialect whose calls are whole turns."""
    remark = "<|channel|>commentary<|message|>hello<|end|><|start|>assistant"
    before = remark if name == "harmony" else "hello "

    assert COMPLETE == permitted(name, turn(), before + CALLS[name], special=special)


def test_text_before_a_call_of_a_whole_turn_makes_it_text():
    name = "llama3_json"
    written = "hello " + CALLS[name]
    tokens = list(tokenizer_with().encode_markup(written))

    assert COMPLETE == permitted(name, turn(), written)
    assert written == hear(DIALECTS[name], turn(), tokenizer_with(), tokens).text


@each
@both
@pytest.mark.parametrize("choice", [ToolChoice.REQUIRED, NamedTool("get")])
def test_required_call_leaves_no_room_for_text(name, choice, special):
    assert REFUSED == permitted(name, turn(choice), TEXT[name], special=special)
    assert REFUSED == permitted(name, turn(choice), "hello " + CALLS[name], special=special)
    assert REFUSED == permitted(name, turn(choice), CALLS[name] + " bye", special=special)


@each
@both
def test_no_choice_permits_text_but_no_call(name, special):
    none = turn(ToolChoice.NONE)

    assert COMPLETE == permitted(name, none, TEXT[name], special=special)
    assert REFUSED == permitted(name, none, CALLS[name], special=special)


@each
@pytest.mark.parametrize("choice", [ToolChoice.AUTO, ToolChoice.REQUIRED])
def test_unknown_tool_is_not_permitted(name, choice):
    unknown = CALLS[name].replace("get", "got")

    assert REFUSED == permitted(name, turn(choice), unknown)


@each
def test_named_tool_is_the_only_one(name):
    assert REFUSED == permitted(name, turn(NamedTool("ping-pong")), CALLS[name])


@each
def test_arguments_follow_the_schema_of_their_tool(name):
    assert REFUSED == permitted(name, turn(), CALLS[name].replace('"a"', '"b"'))
    assert REFUSED == permitted(name, turn(), CALLS[name].replace("get", "get_more"))


@pytest.mark.parametrize("name", SEVERAL)
@both
def test_several_calls_are_permitted_where_they_may_be_parallel(name, special):
    auto, required = turn(), turn(ToolChoice.REQUIRED)
    one, named = turn(parallel=False), turn(NamedTool("get"))

    assert COMPLETE == permitted(name, auto, SEVERAL[name], special=special)
    assert COMPLETE == permitted(name, required, SEVERAL[name], special=special)
    assert REFUSED == permitted(name, one, SEVERAL[name], special=special)
    assert REFUSED == permitted(name, named, SEVERAL[name], special=special)


@pytest.mark.parametrize("name", [*REASONED, "think"])
@both
def test_reasoning_is_free_before_a_constrained_answer(name, special):
    reasoned = REASONED.get(name, REASONED["hermes"])
    final = "<|channel|>final<|message|>" if name == "harmony" else ""
    answer = JsonSchema('{"type": "object", "maxProperties": 0}')
    for text, expected in (
        (reasoned + final + "{}", COMPLETE),
        (final + "{}", COMPLETE),
        (reasoned + final + "{}x", REFUSED),
        (final + "hello", REFUSED),
        (reasoned, BEGUN),
    ):
        assert expected == permitted(name, Turn(), text, special=special, answer=answer)


@pytest.mark.parametrize("name", ["think", "hermes", "deepseek_v3", "mistral"])
@both
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hello", COMPLETE),
        ("OPENhm", BEGUN),
        ("OPENa thought longer than the answerCLOSEhello", COMPLETE),
        ("OPENhmCLOSE", BEGUN),
        ("OPENhmCLOSE\n\na/b", COMPLETE),
        ("a text longer than the answer", REFUSED),
    ],
)
def test_reasoning_is_told_from_an_answer_of_any_letters(name, special, text, expected):
    """The answer's language has the opening tag too, where that is letters."""
    tags = ("[THINK]", "[/THINK]") if name == "mistral" else ("<think>", "</think>")
    written = text.replace("OPEN", tags[0]).replace("CLOSE", tags[1])
    answer = Regex(r"[^\n]{1,16}|a\/b/")

    assert expected == permitted(name, Turn(), written, special=special, answer=answer)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("a/b", "a/b"), (r"a\/b", "a/b"), ("a\nb", "a\nb"), (r"a\\/", "a\\/"), ("[/]x", "/x")],
)
def test_regular_expression_means_the_same_behind_reasoning(pattern, text):
    answer = Regex(pattern)

    assert COMPLETE == permitted("think", Turn(), f"<think></think>{text}", answer=answer)
    assert COMPLETE == permitted("think", Turn(), text, answer=answer)
    assert REFUSED == permitted("think", Turn(), "x" + text, answer=answer)


@pytest.mark.parametrize("name", DIALECTS)
def test_nothing_is_asked_of_a_turn_without_tools_and_constraint(name):
    assert reading(DIALECTS[name], Turn(), None, tokenizer_with().vocabulary).language is None


@pytest.mark.parametrize("schema", ['{"type": "string"}', '{"type": ["null"]}'])
def test_arguments_that_are_no_object_are_refused(schema):
    tools = (Tool("f", "", schema),)
    with pytest.raises(ValueError, match='"type" must be "object"'):
        DIALECTS["hermes"].grammar(Turn("", tools, ToolChoice.AUTO), None, repr)
