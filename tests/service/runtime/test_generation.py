import asyncio

import pytest

from service.errors import DuplicateRequest
from service.generation.finish import FinishReason
from service.runtime.generation import Generation
from service.runtime.live import LiveRequests
from service.runtime.request import Ended
from service.speculation.statistics import SequenceStatistics
from tests.service.runtime.doubles import DrivenEngine, loaded_model, request

LAST = Ended(FinishReason.EOS, None, 5, 1, SequenceStatistics())


def live_generation():
    """Return a generation whose id is reserved, its ticket, the live requests and the wakes."""
    live, wakes = LiveRequests(), []
    ticket = DrivenEngine(loaded_model()).ticket(request())
    with live.reserve("c", "r") as reservation:
        reservation.ticket = ticket
    return Generation(ticket, lambda: wakes.append("wake"), live.forget), ticket, live, wakes


@pytest.mark.asyncio
async def test_id_is_free_before_a_reader_who_is_ahead_of_the_loop_knows_of_the_end():
    generation, ticket, live, wakes = live_generation()
    ticket.outbox.close(LAST)
    async for message in generation:
        assert message is LAST
        assert live.find("c", "r") is None
    assert [] == wakes


@pytest.mark.asyncio
async def test_reader_that_is_cancelled_cancels_the_request_and_wakes_the_engine():
    generation, ticket, _, wakes = live_generation()

    async def read():
        async for _ in generation:
            pass

    reader = asyncio.create_task(read())
    await asyncio.sleep(0)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert ticket.cancellation.is_cancelled
    assert ["wake"] == wakes


def test_cancel_of_an_ended_request_does_nothing():
    generation, ticket, _, wakes = live_generation()
    ticket.outbox.close(LAST)
    generation.cancel()
    assert not ticket.cancellation.is_cancelled
    assert [] == wakes


def failed_preparation(live):
    with live.reserve("c", "r"):
        raise ZeroDivisionError


def test_live_id_is_refused_until_its_preparation_has_failed():
    live = LiveRequests()
    with live.reserve("c", "r"), pytest.raises(DuplicateRequest):
        failed_preparation(live)
    other = LiveRequests()
    with pytest.raises(ZeroDivisionError):
        failed_preparation(other)
    assert other.find("c", "r") is None


def test_ended_request_that_is_forgotten_late_leaves_its_successor_alone():
    _, ticket, live, _ = live_generation()
    live.forget(ticket)
    successor = DrivenEngine(loaded_model()).ticket(request())
    with live.reserve("c", "r") as reservation:
        reservation.ticket = successor
    live.forget(ticket)
    assert reservation is live.find("c", "r")


@pytest.mark.asyncio
async def test_live_requests_tell_when_nothing_lives():
    _, ticket, live, _ = live_generation()
    waiting = asyncio.create_task(live.until_empty())
    await asyncio.sleep(0)
    assert not waiting.done()
    live.forget(ticket)
    await waiting
