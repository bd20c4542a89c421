"""The vocabulary is bytes, and its file means the same to the tokenizers library."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer

from engines.scripted.vocabulary import (
    CHAT_TEMPLATE,
    VOCABULARY_SIZE,
    Special,
    decode,
    encode,
    tokenizer_json,
)
from service.runtime.request import ChatPrompt
from service.text.chat import ChatTemplate
from service.text.conversation import ChatMessage
from service.text.tools import Tool, ToolCall

TOKENIZER = Tokenizer.from_str(tokenizer_json())
texts = st.text(st.characters(blacklist_categories=["Cs"]))


def test_tokenizer_file_has_every_token() -> None:
    assert VOCABULARY_SIZE == TOKENIZER.get_vocab_size() == 261
    assert [TOKENIZER.token_to_id(special.text) for special in Special] == list(Special)


@given(texts)
def test_tokenizer_file_encodes_bytes(text) -> None:
    """Unless the text spells a special token, ids are its bytes."""
    if "<|" not in text:
        assert list(encode(text)) == TOKENIZER.encode(text).ids


@given(texts)
def test_text_survives_its_tokens(text) -> None:
    assert text == decode(encode(text))
    assert text == TOKENIZER.decode(list(encode(text)))


def test_specials_have_no_text() -> None:
    assert "hi" == decode((Special.BOS, *encode("hi"), Special.EOS))


def test_broken_character_is_replaced() -> None:
    assert "\ufffd" == decode(encode("é")[:1])


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([("user", "hi")], "<|bos|><|user|>hi<|reply|>"),
        (
            [("system", "be brief"), ("user", "hi"), ("assistant", "ho"), ("user", "again")],
            "<|bos|><|user|>be brief<|user|>hi<|reply|>ho<|eos|><|user|>again<|reply|>",
        ),
    ],
)
def test_chat_template_marks_the_turns(messages, expected) -> None:
    template = ImmutableSandboxedEnvironment().from_string(CHAT_TEMPLATE)

    rendered = template.render(
        messages=[{"role": role, "content": content} for role, content in messages],
        add_generation_prompt=True,
        bos_token=Special.BOS.text,
        eos_token=Special.EOS.text,
    )

    assert expected == rendered
    assert Special.REPLY == TOKENIZER.encode(rendered).ids[-1]


def test_chat_template_shows_tools_calls_results_and_reasoning() -> None:
    template = ChatTemplate(CHAT_TEMPLATE, path="scripted", eos_token=Special.EOS.text)
    call = ToolCall("c1", "weather", '{"city": "Oslo"}')
    conversation = ChatPrompt(
        messages=(
            ChatMessage("user", "hi"),
            ChatMessage("assistant", "", reasoning="hm", tool_calls=(call,)),
            ChatMessage("tool", "12", tool_call_id="c1"),
        ),
        tools=(Tool("weather"),),
        template_arguments={"date_string": "1 May"},
    )
    shown = template.render(conversation)
    assert shown.startswith("Today is 1 May.\nCall a tool like <tool_call>\n")
    assert shown.endswith(
        "<|user|>hi<|reply|><think>\nhm\n</think>\n\n"
        '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call><|eos|>'
        "<|user|><tool_response>\n12\n</tool_response><|reply|>"
    )
