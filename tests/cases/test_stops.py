"""Texts that end an output: held back while they may still match, released when they do not."""

from __future__ import annotations

import pytest

from engines.scripted.law import ScriptLaw
from service.runtime.models import LoadedModel
from tests.cases.asking import EOS, NONE, STOP, asked, stop_at
from tests.cases.stage import staged, word_ids
from tests.cases.streaming import streamed
from tests.service.rpc.harness import complete, served

pytestmark = pytest.mark.asyncio

PROMPT = tuple(b"say")
WIDTHS = (None, 1, 2, 5, 9)


def speaking(*words: str) -> LoadedModel:
    """Return a model whose output is these words, one token each."""
    return staged(ScriptLaw(((PROMPT, word_ids(words)),)), words=words)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    ("words", "stop", "text"),
    [
        (("DEF", "G", "HI", "J"), "DEFGHIJ", ""),
        (("hel", "lo ", "wor", "ld"), "lo wor", "hel"),
    ],
)
async def test_b20_a_stop_across_tokens_is_found_and_none_of_it_is_sent(words, stop, text, width):
    """B20: the beginning of a stop is sent before it is known to be one, or never found at all."""
    proposer = NONE if width is None else "right"
    async with served(speaking(*words)) as server:
        answer = await streamed(server, asked("say", proposer, width, stops=stop_at(stop)))

    assert text == answer.text
    assert STOP == answer.finished.reason
    assert (0, stop) == (answer.finished.matched_stop.index, answer.finished.matched_stop.text)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    ("words", "stops", "text", "reason"),
    [
        (("?\n",), ["\n"], "?", STOP),
        ((" Al", "ice", "!"), ["\n", "Alice:"], " Alice!", EOS),
        (("abc", "abc", "X"), ["abcd"], "abcabcX", EOS),
        (("x", "abc"), ["abcd"], "xabc", EOS),
    ],
)
async def test_b21_what_was_held_back_is_sent_once_and_whole(words, stops, text, reason, width):
    """B21: held text is lost at the end of the stream, or sent twice after a near match."""
    message = asked("say", NONE if width is None else "right", width, stops=stop_at(*stops))
    async with served(speaking(*words)) as server:
        answer = await streamed(server, message)
        whole = await complete(server, message)

    assert (text, reason) == (answer.text, answer.finished.reason)
    assert (text, reason) == (whole.text, whole.finished.reason)
