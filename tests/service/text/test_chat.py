from datetime import UTC, datetime

import pytest

from service.errors import BundleError, FieldViolation, InvalidRequest
from service.runtime.request import ChatPrompt
from service.text.chat import ChatTemplate
from service.text.conversation import ChatMessage
from service.text.conversation_rules import ChatLimits

CHATML = (
    "{% for message in messages %}<|start|>{{ message['role'] }}\n"
    "{{ message.content }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)
HELLO = (ChatMessage("user", "Hello"),)


def render(source, messages=HELLO, **options):
    template = ChatTemplate(source, path="chat_template.jinja")
    return template.render(ChatPrompt(messages), **options)


def refusal(source, messages=HELLO, **options):
    with pytest.raises(InvalidRequest) as refused:
        render(source, messages, **options)
    return refused.value.violations


def test_render_writes_each_turn_and_the_start_of_the_answer():
    messages = (ChatMessage("system", "Be brief."), ChatMessage("user", "Hi"))

    assert (
        "<|start|>system\nBe brief.<|end|>\n<|start|>user\nHi<|end|>\n<|start|>assistant\n"
        == render(CHATML, messages)
    )


def test_render_without_a_generation_prompt_ends_with_the_last_turn():
    assert "<|start|>user\nHello<|end|>\n" == render(CHATML, add_generation_prompt=False)


def test_render_keeps_a_message_as_it_is():
    """What a user writes is data: neither a template nor HTML."""
    written = "{{ 7 * 7 }} <b>&amp;</b> {% raise %}"

    assert written == render("{{ messages[0].content }}", (ChatMessage("user", written),))


def test_template_sees_the_special_tokens():
    special = {"bos_token": "<s>", "eos_token": "</s>"}
    template = ChatTemplate("{{ bos_token }}|{{ eos_token }}", path="t", **special)

    assert "<s>|</s>" == template.render(ChatPrompt(HELLO))


def test_template_tells_the_time_by_the_given_clock():
    template = ChatTemplate(
        "{{ strftime_now('%d %B %Y') }}", path="t", now=lambda: datetime(2026, 3, 1, tzinfo=UTC)
    )

    assert "01 March 2026" == template.render(ChatPrompt(HELLO))


def test_template_refuses_a_conversation_in_its_own_words():
    found = refusal("{{ raise_exception('Roles must alternate') }}")

    assert (FieldViolation("chat.messages", "Roles must alternate"),) == found


@pytest.mark.parametrize(
    "source",
    [
        "{{ messages[0].missing.deeper }}",
        "{{ messages[0].content + 1 }}",
        "{{ 1 / 0 }}",
        "{{ messages[0]['content']['x']['y'] }}",
        "{% macro again() %}{{ again() }}{% endmacro %}{{ again() }}",
    ],
)
def test_template_that_fails_is_a_bad_request(source):
    (violation,) = refusal(source, field="prompt.chat")

    assert "prompt.chat.messages" == violation.field
    assert violation.description.startswith("the chat template fails on it: ")


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ '{0.__class__.__mro__}'.format(messages) }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ messages.append(1) }}",
        "{{ messages[0].update({'role': 'x'}) }}",
        "{% for i in range(10 ** 9) %}{% endfor %}",
        "{% include '/etc/passwd' %}",
    ],
)
def test_template_that_leaves_the_sandbox_is_refused(source):
    assert ["chat.messages"] == [violation.field for violation in refusal(source)]


def test_template_finds_nothing_behind_its_functions():
    assert "" == render("{{ raise_exception.__globals__ }}{{ strftime_now.__closure__ }}")


def test_template_strips_the_whitespace_of_its_blocks():
    assert "Hello" == render("  {% for m in messages %}\n{{ m.content }}{% endfor %}\n")


def test_template_may_leave_a_loop():
    messages = (ChatMessage("user", "a"), ChatMessage("user", "b"))

    assert "a" == render("{% for m in messages %}{{ m.content }}{% break %}{% endfor %}", messages)


def test_template_may_mark_generated_words():
    assert "Hello!" == render("{% generation %}{{ messages[0].content }}{% endgeneration %}!")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ {'a': '<é>'} | tojson }}", '{"a": "<é>"}'),
        ("{{ {'b': 1, 'a': 2} | tojson(sort_keys=True) }}", '{"a": 2, "b": 1}'),
        ("{{ [1] | tojson(indent=2) }}", "[\n  1\n]"),
    ],
)
def test_template_writes_json_without_escapes(source, text):
    assert text == render(source)


def test_template_that_does_not_compile_is_a_broken_bundle():
    with pytest.raises(BundleError, match="line 2") as refused:
        ChatTemplate("\n{% for %}", path="bundle/chat_template.jinja")

    assert ("bundle/chat_template.jinja", "chat_template") == (
        refused.value.path,
        refused.value.field,
    )


def test_render_refuses_an_empty_conversation():
    assert (FieldViolation("chat.messages", "must not be empty"),) == refusal(CHATML, ())


def test_render_names_every_turn_without_a_role():
    messages = (ChatMessage("", "a"), ChatMessage("user", "b"), ChatMessage("", "c"))

    assert ["chat.messages[0].role", "chat.messages[2].role"] == [
        violation.field for violation in refusal(CHATML, messages)
    ]


@pytest.mark.parametrize(
    ("limits", "description"),
    [
        (ChatLimits(max_messages=1), "at most 1 messages, got 2"),
        (ChatLimits(max_characters=9), "at most 9 characters, got 10"),
    ],
)
def test_render_refuses_a_conversation_beyond_its_limits(limits, description):
    messages = (ChatMessage("user", "a"), ChatMessage("user", "b"))

    assert (FieldViolation("chat.messages", description),) == refusal(
        CHATML, messages, limits=limits
    )


def test_render_gives_up_on_a_rendering_that_grows():
    source = "{% for i in range(1000) %}{% for j in range(1000) %}x{{ i }}{% endfor %}{% endfor %}"
    (violation,) = refusal(source, limits=ChatLimits(max_characters=50))

    assert "renders to more than 50 characters" == violation.description
