"""What a stream is made of: its admission, what is new in each message, and one end."""

from __future__ import annotations

import pytest

from engines.scripted.law import ScriptLaw
from outrider.v1 import generation_pb2
from tests.cases.asking import EOS, LENGTH, NONE, STOP, asked, stop_at
from tests.cases.stage import staged
from tests.cases.streaming import streamed
from tests.service.rpc.harness import complete, served

pytestmark = pytest.mark.asyncio

TEXT = "left END right"
ENDS = {
    "end of sequence": ({}, TEXT, EOS, None),
    "stop text": ({"stops": stop_at("zzz", "END")}, "left ", STOP, (1, "text", "END")),
    "stop id": ({"stops": stop_at(ord("r"))}, "left END ", STOP, (0, "token_id", ord("r"))),
    "budget": ({"max_new_tokens": 6}, "left E", LENGTH, None),
}


def told(stop: generation_pb2.MatchedStop) -> tuple[int, str, object] | None:
    kind = stop.WhichOneof("stop")
    return None if kind is None else (stop.index, kind, getattr(stop, kind))


@pytest.mark.parametrize("width", [None, 1, 4])
@pytest.mark.parametrize(("settings", "text", "reason", "stop"), ENDS.values(), ids=ENDS.keys())
async def test_b44_every_stream_is_deltas_and_one_end_that_tells_why(
    settings, text, reason, stop, width
):
    """B44: a message repeats the whole text, the reason is missing, or which stop it was."""
    model = staged(ScriptLaw(((tuple(b"say"), tuple(TEXT.encode())),)))
    message = asked("say", NONE if width is None else "mostly-right", width, **settings)
    async with served(model) as server:
        answer = await streamed(server, message)
        whole = await complete(server, message)

    assert text == answer.text == whole.text
    assert answer.finished.reason == whole.finished.reason == reason
    assert stop == told(answer.finished.matched_stop) == told(whole.finished.matched_stop)
    usage = answer.finished.usage
    assert (3, len(answer.tokens)) == (usage.prompt_tokens, usage.completion_tokens)
    ends = [event.finished for event in answer.events if event.WhichOneof("event") == "finished"]
    assert [reason] == [end.reason for end in ends]
    assert answer.finished.events[-1].HasField("finished")
    positions = [each.tokens.first_position for each in answer.rounds]
    lengths = [len(each.tokens.token_ids) for each in answer.rounds]
    assert positions == [sum(lengths[:place]) for place in range(len(lengths))]
