"""Characters that lie across tokens."""

from __future__ import annotations

import pytest

from engines.scripted.law import ScriptLaw
from tests.cases.asking import EOS, NONE, STOP, asked, stop_at
from tests.cases.stage import staged
from tests.cases.streaming import streamed
from tests.service.rpc.harness import complete, served

pytestmark = pytest.mark.asyncio

TEXT = "👩‍💻é日本"
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# One byte a token; a round may end at any of them.
WIDTHS = (None, *range(1, 17))


@pytest.mark.parametrize("width", WIDTHS)
async def test_b42_a_character_over_several_tokens_arrives_whole(width):
    """B42: each token's piece of a character becomes U+FFFD, streamed and unary."""
    model = staged(ScriptLaw(((tuple(b"say"), tuple(TEXT.encode())),)))
    for proposer in (NONE,) if width is None else ("right", "mostly-right"):
        async with served(model) as server:
            answer = await streamed(server, asked("say", proposer, width))
            whole = await complete(server, asked("say", proposer, width))

        assert (TEXT, EOS) == (answer.text, answer.finished.reason)
        assert TEXT == whole.text
        assert all(delta and REPLACEMENT not in delta for delta in answer.deltas)


@pytest.mark.parametrize("width", [None, 1, 4, 8])
async def test_b42_a_stop_within_an_emoji_run_is_found(width):
    """B42: the joiner inside one visible sign ends the output."""
    model = staged(ScriptLaw(((tuple(b"say"), tuple(TEXT.encode())),)))
    stops = stop_at("\N{ZERO WIDTH JOINER}")
    async with served(model) as server:
        message = asked("say", NONE if width is None else "right", width, stops=stops)
        answer = await streamed(server, message)

    assert ("👩", STOP) == (answer.text, answer.finished.reason)
