"""Reasoning and its closing tag, wherever tokens and rounds cut it; and what of it is counted."""

from __future__ import annotations

import pytest

from service.runtime.models import LoadedModel
from tests.cases.asking import EOS, LENGTH, NONE, Answer, played, told
from tests.cases.stage import EOS as END
from tests.cases.stage import ReplyLaw, staged, tokenizer_with, word_ids

WEIGHED = "weighing it</think>Answer."
OPENING = "<think>"


def thinking(*words: str) -> LoadedModel:
    """Return a model whose prompt opens the reasoning, and which then says these words."""
    opened = len(tokenizer_with(words).encode_markup(OPENING))
    law = ReplyLaw(word_ids(words), opened)
    return staged(law, words=words, opening=OPENING)


def answers(model: LoadedModel, widths=(None, 1, 4), **settings) -> list[Answer]:
    """Answer the same conversation in plain decoding and with drafts of some widths."""
    return played(
        model,
        [
            told("well?", "think", NONE if width is None else "mostly-right", width, **settings)
            for width in widths
        ],
    )


def parts(answer: Answer) -> tuple[str, str, int]:
    return answer.reasoning, answer.text, answer.finished.reason


@pytest.mark.parametrize("cut", range(1, len(WEIGHED)))
def test_b39_a_closing_tag_is_found_at_every_cut(cut):
    """B39: a tag split over two deltas leaks into the text, and the answer counts as reasoning."""
    for answer in answers(thinking(WEIGHED[:cut], WEIGHED[cut:])):
        assert ("weighing it", "Answer.", EOS) == parts(answer)


@pytest.mark.parametrize("size", range(1, len(WEIGHED) + 1))
def test_b39_a_closing_tag_is_found_in_chunks_of_any_size(size):
    """B39: chunks of 1 to 26 characters."""
    words = [WEIGHED[start : start + size] for start in range(0, len(WEIGHED), size)]
    for answer in answers(thinking(*words)):
        assert ("weighing it", "Answer.", EOS) == parts(answer)


@pytest.mark.parametrize("size", [1, 2, 3, 26])
def test_b39_an_unfinished_tag_at_the_end_is_literal(size):
    """B39: what was held back as the beginning of a tag is sent when it stays one."""
    text = "weighing it</thi"
    words = [text[start : start + size] for start in range(0, len(text), size)]
    for answer in answers(thinking(*words)):
        assert (text, "", EOS) == parts(answer)


@pytest.mark.parametrize("closed_at", [None, 0, 1, 30, 55, 56, 57, 60, 63, 64, 70, 100])
def test_b41_reasoning_is_never_more_than_the_output(closed_at):
    """B41: a block that crosses the budget counts reasoning beyond it, 67 tokens of 64.

    Twelve outputs of 64 tokens, the closing tag nowhere or at twelve places, eight proposals a
    round. Tokens are bytes, so that the text itself says how many were reasoning.
    """
    text = "h" * 120 if closed_at is None else "h" * closed_at + "</think>" + "a" * 100
    model = staged(ReplyLaw(tuple(text.encode()), len(OPENING)), opening=OPENING)
    reasoning = 64 if closed_at is None else min(64, closed_at + len("</think>"))
    for answer in answers(model, (None, 1, 8), max_new_tokens=64):
        usage = answer.finished.usage
        assert (64, LENGTH) == (usage.completion_tokens, answer.finished.reason)
        assert 64 == len(answer.tokens.token_ids)
        assert reasoning == usage.reasoning_tokens
        closing = len("</think>") if "a" in answer.text else 64 - len(answer.reasoning)
        assert len(answer.reasoning) + closing + len(answer.text) == 64


@pytest.mark.parametrize("length", range(1, 12))
def test_b41_an_end_within_a_block_ends_the_count_too(length):
    """B41: end-of-sequence in the middle of a block of eight, while still reasoning."""
    law = ReplyLaw((*b"h" * length, END, *b"more"), len(OPENING))
    for answer in answers(staged(law, opening=OPENING), (None, 1, 8), max_new_tokens=64):
        usage = answer.finished.usage
        assert (length + 1, EOS) == (usage.completion_tokens, answer.finished.reason)
        assert usage.reasoning_tokens <= usage.completion_tokens
        assert "h" * length == answer.reasoning
