"""A model's text side: what its outputs can be constrained to."""

from time import thread_time
from types import SimpleNamespace

import pytest

from service.errors import InvalidRequest
from service.runtime.text import ModelText
from service.text.language import Choice, Lark, Regex
from tests.service.runtime.doubles import EOS, TOKENIZER

TEXT = ModelText("scripted", TOKENIZER, eos_token_ids=EOS)
FIELD = "settings.constraint"


def test_constraint_follows_its_language_and_ends_as_the_request_says():
    state = TEXT.constraint(Regex("ab"), frozenset({7}), FIELD)
    for token in b"ab":
        assert state.permits(token)
        state = state.after(token)

    assert state.is_complete()
    assert state.permits(7)
    assert not any(state.permits(token) for token in EOS)
    assert state.field == FIELD


def test_malformed_constraint_is_refused_by_its_field():
    with pytest.raises(InvalidRequest) as refused:
        TEXT.constraint(Choice(("",)), EOS, FIELD)

    assert refused.value.violations[0].field == f"{FIELD}.choice.texts[0]"


def test_grammar_cannot_name_the_models_own_end():
    with pytest.raises(InvalidRequest):
        TEXT.constraint(Lark("start: <|eos|>"), EOS, FIELD)


def test_texts_of_one_model_are_equal():
    assert ModelText("scripted", TOKENIZER, eos_token_ids=EOS) == TEXT


def with_tokens(*tokens: bytes) -> ModelText:
    return ModelText("words", SimpleNamespace(vocabulary=SimpleNamespace(tokens=tokens)))


def test_tokens_that_contain_any_of_the_texts_break_runs():
    text = with_tokens(b"a", b".b*", b"\xc3", b"x\xc3\xa9", b"", b"c+")

    assert {1, 3} == text.run_breakers(("é", ".", "*"))
    assert frozenset() == text.run_breakers(())


def test_as_many_breakers_as_a_request_may_have_are_found_in_a_moment():
    """The interpreter is taken meanwhile, and with it every engine."""
    text = with_tokens(*(b"token %d" % number for number in range(50_000)))
    breakers = [f"{number}q" for number in range(64)]

    begun = thread_time()
    assert not text.run_breakers(breakers)
    assert thread_time() - begun < 0.25
