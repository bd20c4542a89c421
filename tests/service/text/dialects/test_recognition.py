"""Which dialect a template is found to belong to."""

import pytest

from engines.build.default_model import default_bundle_path
from service.text.chat import ChatTemplate
from service.text.dialects.recognition import Recogniser
from service.text.dialects.registry import DIALECTS
from tests.service.text.dialects.families import FAMILIES, Family, byte_tokenizer


def recognised(family: Family, *markers: str) -> str:
    tokenizer = family.tokenizer(*markers)
    template = ChatTemplate(family.template, path="t", bos_token="", eos_token=family.end)
    ends = {tokenizer.vocabulary.special_id(end) for end in (family.end, *family.ends)}
    return Recogniser(template, tokenizer, frozenset(ends)).dialect().name


@pytest.mark.parametrize("particular", FAMILIES)
def test_dialect_is_recognised_by_what_the_template_writes(particular):
    expected = particular.partition(",")[0]

    assert expected == recognised(FAMILIES[particular])


@pytest.mark.parametrize("particular", FAMILIES)
def test_dialect_is_the_same_where_its_markers_are_tokens(particular):
    expected = particular.partition(",")[0]

    assert expected == recognised(FAMILIES[particular], *DIALECTS[expected].markers)


def test_calls_behind_a_foreign_special_token_are_not_recognised():
    """The token adds no text, so that the call alone looks like one of Llama 3."""
    family = FAMILIES["llama3_json"]
    foreign = family.template.replace('{"name"', '<|call_now|>{"name"')

    assert "plain" == recognised(Family(foreign, family.end, family.special))
    assert "plain" == recognised(Family(foreign, family.end, family.special), "<|call_now|>")


@pytest.mark.parametrize(
    "written",
    [
        '<tool_call>{"name": "{{ f.name }}", "arguments": {}}</tool_call>',
        '<tool_call>{"name": "other", "arguments": {{ f.arguments | tojson }}}</tool_call>',
        'x<tool_call>{"name": "{{ f.name }}", "arguments": {{ f.arguments|tojson }}}</tool_call>',
        '<tool_call>{"name": "{{ f.name }}", "arguments": {{ f.arguments | tojson }}}',
        "{{ f.name }}: {{ f.arguments | tojson }}",
    ],
)
def test_template_that_writes_a_call_otherwise_is_plain(written):
    source = (
        "{% for m in messages %}{% for c in m.tool_calls or [] %}{% set f = c.function %}"
        f"{written}{{% endfor %}}{{% endfor %}}"
    )

    assert "plain" == recognised(Family(source, "</s>"))


def test_default_model_has_no_calls_in_its_template(default_template):
    assert "plain" == recognised(Family(default_template, "<|im_end|>", ("<|im_start|>",)))


@pytest.fixture
def default_template():
    """The template of the default model, from its bundle where it has been built."""
    path = default_bundle_path() / "chat_template.jinja"
    if not path.is_file():
        pytest.skip("the default model has not been built")
    return path.read_text()


def test_probing_needs_no_special_tokens():
    template = ChatTemplate(FAMILIES["hermes"].template, path="t")

    assert "plain" == Recogniser(template, byte_tokenizer(), frozenset()).dialect().name
