"""A model's text side: what its outputs can be constrained to."""

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
