"""What a template receives beside plain turns, and what is refused before it sees anything."""

import json

import pytest

from service.errors import FieldViolation, InvalidRequest
from service.runtime.request import ChatPrompt
from service.text.chat import ChatTemplate
from service.text.conversation import ChatMessage
from service.text.conversation_rules import MOST_OF_A_PART, USUAL_LIMITS, ChatLimits
from service.text.tools import Tool, ToolCall

USER = ChatMessage("user", "Weather?")
CALL = ToolCall("call_0", "weather", '{"city": "Brünn", "days": 2}')
CALLING = ChatMessage("assistant", "", tool_calls=(CALL,))
WEATHER = Tool(
    "weather", "Tells it.", '{"type": "object", "properties": {"city": {"type": "string"}}}'
)


def render(source, *messages, limits=USUAL_LIMITS, **chat):
    template = ChatTemplate(source, path="t")
    return template.render(ChatPrompt(messages or (USER,), **chat), limits=limits)


def refusal(source, *messages, **chat):
    with pytest.raises(InvalidRequest) as refused:
        render(source, *messages, **chat)
    return refused.value.violations


def fields(violations):
    return [violation.field for violation in violations]


def test_template_receives_tools_as_functions_with_a_parsed_schema():
    assert [
        {
            "type": "function",
            "function": {
                "name": "weather",
                "description": "Tells it.",
                "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
            },
        },
        {
            "type": "function",
            "function": {
                "name": "clock",
                "description": "",
                "parameters": {"type": "object", "properties": {}},
            },
        },
    ] == json.loads(render("{{ tools | tojson }}", tools=(WEATHER, Tool("clock"))))


def test_template_receives_none_where_there_are_no_tools():
    assert "none" == render("{% if tools is none %}none{% endif %}")


def test_template_receives_calls_with_arguments_as_an_object():
    source = "{{ messages[1].tool_calls | tojson }}"

    assert [
        {
            "id": "call_0",
            "type": "function",
            "function": {"name": "weather", "arguments": {"city": "Brünn", "days": 2}},
        }
    ] == json.loads(render(source, USER, CALLING))


@pytest.mark.parametrize(
    "expression",
    ["'<' + arguments + '>'", "'<' ~ arguments ~ '>'", "'<%s>' | format(arguments | string)"],
)
def test_template_may_write_arguments_out_as_the_text_they_came_in(expression):
    """Some templates join them to other text, and would fail on an object."""
    source = "{% set arguments = messages[1].tool_calls[0].function.arguments %}{{ EXPRESSION }}"

    rendered = render(source.replace("EXPRESSION", expression), USER, CALLING)

    assert '<{"city": "Brünn", "days": 2}>' == rendered


def test_template_may_look_into_arguments():
    source = (
        "{% set arguments = messages[1].tool_calls[0].function.arguments %}"
        "{% for name, value in arguments | items %}{{ name }}={{ value }};{% endfor %}"
        "{{ arguments is mapping }} {{ arguments is string }}"
    )

    assert "city=Brünn;days=2;True False" == render(source, USER, CALLING)


@pytest.mark.parametrize(
    "shown",
    [
        "{% if m.content is none %}{{ m.tool_calls[0].function.name }}{% endif %}",
        "{% set c = m.tool_calls[0] %}{{ c.type[8:] + c.function.name if m.content is none }}",
        "{{ m.content + m.tool_calls[0].function.name }}",
        "{{ m.content }}{{ m.tool_calls[0].function.name }}",
        "{{ m.content | trim }}{{ m.tool_calls[0].function.name }}",
    ],
)
def test_calls_without_a_word_are_shown_by_every_kind_of_template(shown):
    """Templates differ in whether such a turn has no content or an empty one."""
    source = f"{{% set m = messages[1] %}}{shown}"

    assert "weather" == render(source, USER, CALLING)


def test_call_without_arguments_has_an_empty_object():
    calling = ChatMessage("assistant", "", tool_calls=(ToolCall("a", "now", ""),))
    source = (
        "{% set made = messages[1].tool_calls[0].function.arguments %}{{ made | tojson }}{{ made }}"
    )

    assert "{}{}" == render(source, USER, calling)


def test_tool_turn_names_the_call_that_it_answers():
    answer = ChatMessage("tool", "Rain.", tool_call_id="call_0")
    source = "{% if messages[1].tool_calls %}{{ messages[2] | tojson }}{% endif %}"

    assert {
        "role": "tool",
        "content": "Rain.",
        "tool_call_id": "call_0",
        "name": "weather",
    } == json.loads(render(source, USER, CALLING, answer))


def test_call_ids_may_return_in_a_later_turn():
    """A server may count calls anew in each turn: the answer belongs to the latest."""
    again = ChatMessage("assistant", "", tool_calls=(ToolCall("call_0", "clock", ""),))
    answer = ChatMessage("tool", "Rain.", tool_call_id="call_0")
    source = "{% set calls = messages[1].tool_calls %}{{ messages[-1].name }}"

    assert "clock" == render(source, USER, CALLING, answer, again, answer)


def test_turn_without_more_has_no_further_keys():
    assert {"role": "user", "content": "Weather?"} == json.loads(render("{{ messages[0]|tojson }}"))


@pytest.mark.parametrize("name", ["reasoning_content", "thinking"])
def test_reasoning_goes_by_the_names_that_templates_use(name):
    reasoned = ChatMessage("assistant", "4", reasoning="2 + 2")

    assert "2 + 2" == render(f"{{{{ messages[1].{name} }}}}", USER, reasoned)


def test_template_arguments_are_variables():
    source = "{{ enable_thinking }} {{ extra.a[0] }}"
    given = {"enable_thinking": False, "extra": {"a": [1]}}

    assert "False 1" == render(source, template_arguments=given)


@pytest.mark.parametrize(
    "name",
    ["messages", "tools", "add_generation_prompt", "bos_token", "raise_exception", "range"],
)
def test_template_arguments_cannot_replace_what_a_template_receives(name):
    (violation,) = refusal(f"{{{{ {name} }}}}", template_arguments={name: "x"})

    assert f"chat.template_arguments.{name}" == violation.field
    assert "already receives" in violation.description


def test_template_argument_without_an_effect_is_refused():
    (violation,) = refusal("{{ messages }}", template_arguments={"enable_thinking": True})

    assert (
        FieldViolation(
            "chat.template_arguments.enable_thinking",
            "is no variable of this model's chat template",
        )
        == violation
    )


def test_calls_that_the_template_would_not_show_are_refused():
    (violation,) = refusal("{{ messages[0].content }}", USER, CALLING)

    assert (
        FieldViolation(
            "chat.messages[1].tool_calls", "this model's chat template does not show tool calls"
        )
        == violation
    )


def test_one_part_hides_nothing_of_another():
    """However much is wrong with it: the first of each part are named."""
    many = {f"x{place}": True for place in range(100)}
    tools = (Tool("not a name", "", "{"),) * 100
    found = fields(refusal("", *[ChatMessage("", "")] * 100, tools=tools, template_arguments=many))

    for part in ("template_arguments.", "tools[", "messages["):
        assert MOST_OF_A_PART == sum(field.startswith(f"chat.{part}") for field in found)


@pytest.mark.parametrize("spelled", ["m.tool_calls", "m['tool_calls']", "'tool_calls' in m"])
def test_template_may_ask_for_calls_in_each_usual_way(spelled):
    source = f"{{% for m in messages %}}{{% if {spelled} %}}call{{% endif %}}{{% endfor %}}"

    assert "call" == render(source, USER, CALLING)


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("{", "must be JSON"),
        ("[]", "must be a JSON object"),
        ("true", "must be a JSON object"),
        ('{"maximum": NaN}', "must be JSON"),
        ('{"a":' * 65 + "1" + "}" * 65, "must not nest deeper than 64"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "must not nest deeper than 64"),
    ],
)
def test_malformed_json_is_named_wherever_it_stands(schema, reason):
    broken = ChatMessage("assistant", "", tool_calls=(ToolCall("a", "b", schema),))
    found = refusal(
        "{{ messages.tool_calls }}", USER, broken, tools=(WEATHER, Tool("x", "", schema))
    )

    assert [
        "chat.tools[1].parameters_json_schema",
        "chat.messages[1].tool_calls[0].arguments_json",
    ] == fields(found)
    assert all(violation.description.startswith(reason) for violation in found)


def test_json_of_the_greatest_depth_is_read():
    deepest = '{"a":' * 64 + "1" + "}" * 64

    assert "ok" == render("{% if tools %}ok{% endif %}", tools=(Tool("x", "", deepest),))


def test_template_argument_that_nests_too_deep_is_refused():
    value = 1
    for _ in range(65):
        value = [value]

    assert ["chat.template_arguments.x"] == fields(
        refusal("{{ x }}", template_arguments={"x": value})
    )


@pytest.mark.parametrize("name", ["", "a b", "é", "x" * 65, "a.b", "a\n"])
def test_tool_name_is_of_plain_letters(name):
    assert ["chat.tools[0].name"] == fields(refusal("{{ tools }}", tools=(Tool(name),)))


def test_tool_names_are_unique():
    assert ["chat.tools[1].name"] == fields(refusal("{{ tools }}", tools=(WEATHER, WEATHER)))


def test_call_ids_are_unique_in_their_turn():
    twice = ChatMessage("assistant", "", tool_calls=(CALL, CALL))

    assert ["chat.messages[1].tool_calls[1].id"] == fields(
        refusal("{{ messages.tool_calls }}", USER, twice)
    )


@pytest.mark.parametrize("messages", [(USER,), (USER, CALLING)])
def test_answer_to_no_call_is_refused(messages):
    answer = ChatMessage("tool", "Rain.", tool_call_id="call_7")
    found = refusal("{{ messages.tool_calls }}", *messages, answer)

    assert [f"chat.messages[{len(messages)}].tool_call_id"] == fields(found)


@pytest.mark.parametrize(
    ("field", "chat"),
    [
        ("chat.tools", {"tools": (Tool("a", "x" * 100),)}),
        ("chat.template_arguments", {"template_arguments": {"x": ["y" * 60, "y" * 60]}}),
        ("chat.template_arguments", {"template_arguments": {"x": [[]] * 100}}),
    ],
)
def test_every_part_of_a_conversation_is_bounded(field, chat):
    found = refusal("{{ x }}", limits=ChatLimits(max_characters=100), **chat)

    assert [field] == fields(found)


def test_number_of_tools_is_bounded():
    tools = tuple(Tool(f"t{index}") for index in range(3))

    assert (FieldViolation("chat.tools", "at most 2 tools, got 3"),) == refusal(
        "{{ tools }}", tools=tools, limits=ChatLimits(max_tools=2)
    )


def test_calls_count_as_characters():
    assert ["chat.messages"] == fields(
        refusal("{{ m.tool_calls }}", USER, CALLING, limits=ChatLimits(max_characters=40))
    )
