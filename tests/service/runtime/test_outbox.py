import asyncio
from dataclasses import replace

import pytest

from service.errors import SlowConsumer
from service.generation.events import (
    Finished,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallEnd,
)
from service.generation.finish import FinishReason
from service.generation.sequence import TokenCommit
from service.runtime.outbox import Outbox, joined_events, joined_rounds
from service.runtime.request import Ended
from service.speculation.contract import TokenLogprob
from service.speculation.publication import PublishedRound
from service.speculation.round import TokenSource
from service.speculation.statistics import SequenceStatistics

LAST = Ended(FinishReason.EOS, None, 1, 1, SequenceStatistics())


class StoppedClock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def round_of(*positions, judged=0, accepted=0):
    return PublishedRound(
        tokens=tuple(TokenCommit(100 + place, place, None) for place in positions),
        sources=(TokenSource.PLAIN,) * len(positions),
        judged=judged,
        accepted=accepted,
        events=tuple(TextDelta(str(place)) for place in positions),
    )


def outbox_of(capacity=2, patience=5.0):
    clock = StoppedClock()
    return Outbox(capacity, patience, clock), clock


def test_outbox_gives_rounds_in_order_then_the_last_message():
    outbox, _ = outbox_of()
    outbox.put(round_of(0))
    outbox.put(round_of(1))
    outbox.close(LAST)
    assert [round_of(0), round_of(1), LAST] == [outbox.take() for _ in range(3)]


def test_outbox_without_messages_gives_none():
    outbox, _ = outbox_of()
    assert outbox.take() is None
    assert not outbox.is_closed


def test_outbox_that_is_full_joins_later_rounds_to_the_last():
    outbox, _ = outbox_of(capacity=2)
    for place in range(5):
        outbox.put(round_of(place, judged=2, accepted=1))
    assert round_of(0, judged=2, accepted=1) == outbox.take()
    joined = outbox.take()
    assert [1, 2, 3, 4] == [commit.position for commit in joined.tokens]
    assert (TextDelta("1234"),) == joined.events
    assert (8, 4) == (joined.judged, joined.accepted)
    assert outbox.take() is None


def test_outbox_left_full_beyond_patience_refuses_a_round_whole():
    outbox, clock = outbox_of(capacity=1, patience=5.0)
    outbox.put(round_of(0))
    outbox.put(round_of(1))
    clock.now = 5.0
    outbox.put(round_of(2))
    clock.now = 5.5
    with pytest.raises(SlowConsumer) as caught:
        outbox.put(round_of(3))
    assert 1 == caught.value.messages
    assert [0, 1, 2] == [commit.position for commit in outbox.take().tokens]


def test_outbox_whose_reader_takes_something_is_patient_again():
    outbox, clock = outbox_of(capacity=1, patience=5.0)
    outbox.put(round_of(0))
    outbox.put(round_of(1))
    clock.now = 6.0
    outbox.take()
    outbox.put(round_of(2))
    outbox.put(round_of(3))
    clock.now = 11.0
    outbox.put(round_of(4))
    assert [2, 3, 4] == [commit.position for commit in outbox.take().tokens]


def test_outbox_takes_the_last_message_even_when_full():
    outbox, _ = outbox_of(capacity=1)
    outbox.put(round_of(0))
    outbox.close(LAST)
    assert outbox.is_closed
    assert [round_of(0), LAST] == [outbox.take(), outbox.take()]


@pytest.mark.asyncio
async def test_outbox_reader_sleeps_until_it_is_notified():
    outbox, _ = outbox_of()
    reader = asyncio.create_task(outbox.get())
    await asyncio.sleep(0)
    outbox.put(round_of(0))
    await asyncio.sleep(0)
    assert not reader.done()
    outbox.notify()
    assert round_of(0) == await reader


@pytest.mark.asyncio
async def test_outbox_notified_for_what_was_read_already_makes_the_reader_wait_again():
    outbox, _ = outbox_of()
    outbox.put(round_of(0))
    outbox.notify()
    assert round_of(0) == await outbox.get()
    reader = asyncio.create_task(outbox.get())
    for _ in range(3):
        await asyncio.sleep(0)
    assert not reader.done()
    outbox.close(LAST)
    outbox.notify()
    assert await reader is LAST


@pytest.mark.parametrize(
    ("first", "second", "joined"),
    [
        (TextDelta("a"), TextDelta("b"), (TextDelta("ab"),)),
        (ReasoningDelta("a"), ReasoningDelta("b"), (ReasoningDelta("ab"),)),
        (
            ToolArgumentsDelta(1, "{"),
            ToolArgumentsDelta(1, "}"),
            (ToolArgumentsDelta(1, "{}"),),
        ),
        (
            ToolArgumentsDelta(1, "{"),
            ToolArgumentsDelta(2, "}"),
            (ToolArgumentsDelta(1, "{"), ToolArgumentsDelta(2, "}")),
        ),
        (ReasoningDelta("a"), TextDelta("b"), (ReasoningDelta("a"), TextDelta("b"))),
        (ToolCallEnd(), ToolCallEnd(), (ToolCallEnd(), ToolCallEnd())),
    ],
)
def test_events_that_meet_are_joined_only_within_one_stretch(first, second, joined):
    assert joined == joined_events((first,), (second,))


def test_joined_rounds_keep_every_log_probability_in_order():
    scored = [TokenLogprob(-float(place)) for place in range(4)]
    first = replace(round_of(0), logprobs=(scored[1],), prompt_logprobs=(scored[0],))
    second = replace(round_of(1, 2), logprobs=(scored[2], scored[3]))
    joined = joined_rounds(first, second)
    assert (tuple(scored[1:]), (scored[0],)) == (joined.logprobs, joined.prompt_logprobs)


def test_rounds_are_joined_without_loss_when_one_has_no_tokens():
    end = PublishedRound((), (), 0, 0, (Finished(FinishReason.CANCELLED),))
    joined = joined_rounds(round_of(3), end)
    assert round_of(3).tokens == joined.tokens
    assert (TextDelta("3"), Finished(FinishReason.CANCELLED)) == joined.events
