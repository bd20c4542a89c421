"""One stream's requests do not wait for each other, nor does what is unread grow without bound."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from outrider.v1 import generation_pb2, settings_pb2
from outrider.v1.generation_service_pb2 import GenerateRequest
from service.rpc.request_stream import MAX_UNSENT, RequestStream
from service.runtime.settings import RuntimeOptions
from service.speculation.observer import LifecycleStage
from tests.service.rpc.harness import (
    LONG,
    Bidi,
    Gate,
    HeldCall,
    cancel,
    kinds,
    loaded,
    served,
    start,
    tokens_of,
)

pytestmark = pytest.mark.asyncio

SENT = 400
QUEUED = 16
SLOTS = 8


def refused(number: int) -> GenerateRequest:
    return start(str(number), text="")


def short(number: int) -> GenerateRequest:
    return start(str(number), max_new_tokens=1)


@pytest.mark.parametrize("make", [refused, short])
async def test_reading_stops_while_answers_are_not_read(make: Callable[[int], GenerateRequest]):
    """Whether they fail at once or end at once, what is held for an idle reader has a bound."""
    call = HeldCall()
    taken = 0

    async def requests() -> AsyncIterator[GenerateRequest]:
        nonlocal taken
        for number in range(SENT):
            taken += 1
            yield make(number)

    async with served(runtime_options=RuntimeOptions(max_queued_requests=QUEUED)) as server:
        running = asyncio.create_task(RequestStream(server.runtime, call).run(requests()))
        for _ in range(20 * SENT):
            await asyncio.sleep(0)
        held = taken
        call.is_open.set()
        await running
    assert MAX_UNSENT <= held <= MAX_UNSENT + QUEUED + SLOTS
    assert SENT == taken
    ended = [r.request_id for r in call.written if r.WhichOneof("event") in {"finished", "failed"}]
    assert sorted(map(str, range(SENT))) == sorted(ended)


async def test_cancel_waits_for_no_other_request_to_be_tokenised():
    gate = Gate(LifecycleStage.ADMISSION)
    async with served(loaded(LONG, gate)) as server:
        bidi = Bidi(server)
        running = start("running", max_new_tokens=8000, stop_on_eos=False)
        running.start.speculation.mode = settings_pb2.SPECULATION_MODE_NONE
        await bidi.send(running)
        await bidi.next()
        with gate.closed():
            await bidi.send(start("slow", max_new_tokens=1), cancel("running"))
            cancelled = await bidi.until_terminal("running")
        slow = await bidi.until_terminal("slow")
        bidi.call.cancel()
    assert generation_pb2.FINISH_REASON_CANCELLED == cancelled["running"][-1].finished.reason
    assert ["admitted", "round", "finished"] == kinds(slow["slow"])


async def test_cancel_of_a_request_that_is_being_tokenised_is_not_lost():
    gate = Gate(LifecycleStage.ADMISSION)
    async with served(loaded(gate=gate)) as server:
        bidi = Bidi(server)
        with gate.closed():
            await bidi.send(start("a", max_new_tokens=40), cancel("a"))
            # Answered in order, so the cancellation has been taken.
            await bidi.send(start("mark", text=""))
            assert "mark" == (await bidi.next()).request_id
        received = (await bidi.until_terminal("a"))["a"]
        bidi.call.cancel()
    assert ["admitted", "finished"] == kinds(received)
    assert generation_pb2.FINISH_REASON_CANCELLED == received[-1].finished.reason
    assert [] == tokens_of(received)
