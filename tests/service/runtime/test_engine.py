"""One engine, turn by turn, on the test's own thread and clock."""

import gc
import weakref
from dataclasses import replace

import pytest

from engines.scripted.cache import SlotState
from engines.scripted.clock import ManualClock
from engines.scripted.device import HANG
from engines.scripted.fault import Fault, FaultPlan, Operation
from engines.scripted.model import ScriptedSettings
from engines.scripted.timetable import Timetable
from service.errors import (
    Draining,
    EngineError,
    EngineStopped,
    QueueFull,
    RequestTimedOut,
    RestoreFailed,
    SlowConsumer,
)
from service.generation.events import Finished
from service.generation.finish import FinishReason
from service.runtime.request import Ended, Failed
from service.speculation.options import SchedulerOptions
from service.speculation.table import Turn
from tests.service.runtime.doubles import (
    LAW,
    PLAIN,
    SMALL,
    DrivenEngine,
    drained,
    expected_tokens,
    loaded_model,
    loaded_proposer,
    request,
    tokens_of,
)

SLOW = ScriptedSettings(
    law=LAW, max_context=128, max_slots=2, is_synchronous=False, timetable=Timetable(1.0)
)
EIGHT = ScriptedSettings(law=LAW, max_context=128, max_slots=8)


def driven(settings=SMALL, faults=None, proposers=(), scheduler=None, **limits):
    clock = ManualClock()
    model = loaded_model(settings, clock, faults, proposers=proposers)
    if scheduler is not None:
        model = replace(model, scheduler=scheduler)
    return DrivenEngine(model, clock, **limits)


def slow_engine(timetable=SLOW.timetable, **limits):
    """Return an engine whose passes take a second each, one lane after another."""
    return driven(replace(SLOW, timetable=timetable), **limits)


def events_of(messages):
    return [event for each in messages if hasattr(each, "events") for event in each.events]


def in_flight(engine, limit=10):
    """Turn until only a pass can help."""
    for _ in range(limit):
        if engine.engine.turn() is Turn.WAITING:
            return
    raise AssertionError("nothing is in flight")


def slots_in_use(engine):
    cache = engine.model.target.cache
    states = (cache.state(slot) for slot in range(engine.model.target.limits.max_slots))
    return sum(state is SlotState.OPEN for state in states)


def test_request_is_decoded_from_prompt_to_its_last_message():
    engine = driven()
    ticket = engine.submit(request("hello", max_new_tokens=9))
    engine.run()
    messages = drained(ticket)
    assert expected_tokens("hello", 9) == tokens_of(messages)
    last = messages[-1]
    assert FinishReason.MAX_TOKENS is last.reason
    assert (5, 9) == (last.prompt_tokens, last.completion_tokens)
    assert 9 == last.statistics.emitted_tokens
    assert 0 == slots_in_use(engine)


def test_speculation_changes_no_token():
    engine = driven(proposers=(loaded_proposer("draft", "mostly-right"),))
    drafted = engine.submit(request("hello", max_new_tokens=40))
    plain = engine.submit(request("hello", request_id="p", max_new_tokens=40, speculation=PLAIN))
    engine.run()
    with_draft, without = drained(drafted), drained(plain)
    assert tokens_of(without) == tokens_of(with_draft)
    assert with_draft[-1].statistics.accepted_tokens > 0
    assert 0 == without[-1].statistics.draft_tokens


def test_waiting_requests_get_slots_as_others_end():
    engine = driven()
    tickets = [
        engine.submit(request("hello", request_id=str(number), max_new_tokens=3))
        for number in range(5)
    ]
    engine.turn()
    assert 3 == len(engine.admission)
    engine.run()
    assert [expected_tokens("hello", 3)] * 5 == [tokens_of(drained(each)) for each in tickets]


def test_turn_makes_one_call_to_the_loop_whatever_it_brings():
    engine = driven(EIGHT)
    for number in range(8):
        engine.submit(request("hello", request_id=str(number), max_new_tokens=4))
    turns = 0
    while engine.engine.turn() is not Turn.IDLE:
        turns += 1
        assert engine.loop.calls <= turns
    assert any(8 == len(touched) for touched in engine.touched)


def test_turn_that_brings_nothing_makes_no_call():
    engine = driven()
    engine.turn(3)
    assert 0 == engine.loop.calls


def test_full_queue_refuses_with_advice_and_recovers():
    engine = driven(max_queued=1)
    for number in range(3):
        engine.submit(request("hello", request_id=str(number), max_new_tokens=2))
    with pytest.raises(QueueFull) as caught:
        engine.submit(request("hello", request_id="late"))
    full = caught.value
    assert (3, 0, 1.0) == (full.waiting, full.decoding, full.retry_seconds)
    engine.run()
    engine.submit(request("hello", request_id="late", max_new_tokens=2))


def test_engine_without_a_queue_still_fills_its_slots():
    engine = driven(max_queued=0)
    for number in range(2):
        engine.submit(request("hello", request_id=str(number), max_new_tokens=2))
    with pytest.raises(QueueFull):
        engine.submit(request("hello", request_id="late"))
    engine.turn()
    with pytest.raises(QueueFull):
        engine.submit(request("hello", request_id="late"))
    engine.run()
    engine.submit(request("hello", request_id="late"))


def test_requests_under_preparation_hold_their_places():
    engine = driven(max_queued=1)
    arrival = engine.admission.arrival
    with arrival(), arrival(), arrival(), pytest.raises(QueueFull):
        engine.submit(request("hello"))
    engine.submit(request("hello"))


def test_retry_advice_comes_from_how_long_slots_are_held():
    engine = slow_engine(max_queued=0)
    engine.submit(request("hello", max_new_tokens=4))
    engine.run()
    for number in range(2):
        engine.submit(request("hello", request_id=str(number)))
    with pytest.raises(QueueFull) as caught:
        engine.submit(request("hello", request_id="late"))
    assert pytest.approx(4.0 / 2) == caught.value.retry_seconds


def test_request_cancelled_in_line_never_takes_a_slot():
    engine = driven()
    ticket = engine.submit(request("hello"))
    ticket.cancellation.cancel()
    engine.turn()
    ended = drained(ticket)
    assert [Finished(FinishReason.CANCELLED)] == events_of(ended)
    assert FinishReason.CANCELLED is ended[-1].reason
    assert 0 == engine.model.target.cache.generation(engine.model.target.open()) - 1


def test_client_gone_while_a_pass_is_in_flight_frees_its_slot_with_that_pass():
    engine = slow_engine()
    gone = engine.submit(request("hello", max_new_tokens=50))
    stays = engine.submit(request("world", request_id="s", max_new_tokens=8))
    in_flight(engine)
    engine.clock.advance(1.0)
    in_flight(engine)
    gone.cancellation.cancel()
    passes = engine.model.target.passes
    engine.turn()
    assert 2 == slots_in_use(engine)
    engine.clock.advance(1.0)
    engine.turn()
    assert 1 == slots_in_use(engine)
    assert passes == engine.model.target.passes
    assert FinishReason.CANCELLED is drained(gone)[-1].reason
    engine.run()
    assert expected_tokens("world", 8) == tokens_of(drained(stays))


def test_timed_out_request_fails_with_what_was_delivered_intact():
    engine = slow_engine()
    ticket = engine.submit(request("hello", max_new_tokens=50, timeout=3.5))
    engine.run()
    messages = drained(ticket)
    assert isinstance(messages[-1].error, RequestTimedOut)
    assert 3.5 == messages[-1].error.seconds
    delivered = tokens_of(messages)
    assert len(delivered) > 0
    assert expected_tokens("hello", len(delivered)) == delivered
    assert not any(isinstance(event, Finished) for event in events_of(messages))
    assert len(delivered) == messages[-1].statistics.emitted_tokens


def test_request_that_times_out_in_line_never_takes_a_slot():
    engine = slow_engine()
    for number in range(2):
        engine.submit(request("hello", request_id=str(number), max_new_tokens=50))
    in_flight(engine)
    late = engine.submit(request("hello", request_id="late", timeout=0.5))
    engine.clock.advance(0.5)
    engine.turn()
    (failed,) = drained(late)
    assert isinstance(failed.error, RequestTimedOut)
    assert failed.statistics is None


def test_engine_looks_again_at_the_earliest_deadline():
    engine = slow_engine()
    assert engine.engine.next_deadline() is None
    engine.submit(request("hello", timeout=7.0))
    engine.submit(request("hello", request_id="sooner", timeout=3.0))
    assert 3.0 == engine.engine.next_deadline()
    in_flight(engine)
    assert 3.0 == engine.engine.next_deadline()


def test_deadline_of_a_pass_counts_beside_those_of_requests():
    options = SchedulerOptions(completion_timeout_milliseconds=2000)
    engine = driven(SLOW, scheduler=options)
    engine.submit(request("hello", timeout=7.0))
    in_flight(engine)
    assert 2.0 == engine.engine.next_deadline()


def test_completion_that_beats_its_timeout_in_the_same_turn_still_counts():
    engine = driven()
    ticket = engine.submit(request("hello", max_new_tokens=3, timeout=1.0))
    engine.run()
    assert FinishReason.MAX_TOKENS is drained(ticket)[-1].reason


@pytest.mark.parametrize(
    "where", [Operation.ROWS, Operation.COMMIT, Operation.RESTORE, Operation.CHECKPOINT]
)
def test_failing_lane_of_eight_leaves_the_others_unchanged(where):
    faults = FaultPlan()
    engine = driven(EIGHT, faults)
    tickets = [
        engine.submit(request("abcdefgh"[number:], request_id=str(number), max_new_tokens=12))
        for number in range(8)
    ]
    engine.turn(3)
    if where is Operation.RESTORE:
        faults.arm(Fault(Operation.ROWS, EngineError("rows"), slot=3))
    faults.arm(Fault(where, EngineError("scripted"), slot=3))
    engine.run()
    ends = [drained(ticket) for ticket in tickets]
    assert isinstance(ends[3][-1], Failed)
    for number in {*range(8)} - {3}:
        expected = expected_tokens("abcdefgh"[number:], 12)
        assert expected == tokens_of(ends[number])
        assert FinishReason.MAX_TOKENS is ends[number][-1].reason


def test_slot_that_cannot_be_restored_is_never_used_again():
    faults = FaultPlan(
        [
            Fault(Operation.ROWS, EngineError("rows"), slot=0),
            Fault(Operation.RESTORE, EngineError("restore"), slot=0),
        ]
    )
    engine = driven(SMALL, faults)
    ticket = engine.submit(request("hello", max_new_tokens=5))
    engine.run()
    assert isinstance(drained(ticket)[-1].error, RestoreFailed)
    assert SlotState.ABANDONED is engine.model.target.cache.state(0)
    after = engine.submit(request("hello", request_id="after", max_new_tokens=5))
    engine.run()
    assert expected_tokens("hello", 5) == tokens_of(drained(after))


def test_engine_without_a_slot_left_stops():
    faults = FaultPlan(
        [
            Fault(Operation.ROWS, EngineError("rows"), slot=0),
            Fault(Operation.RESTORE, EngineError("restore"), slot=0),
        ]
    )
    engine = driven(replace(SMALL, max_slots=1), faults)
    engine.submit(request("hello", max_new_tokens=5))
    engine.run()
    engine.submit(request("hello", request_id="after"))
    with pytest.raises(EngineError, match="retired"):
        engine.turn()


def test_slot_of_a_hung_pass_is_waited_for():
    """The lane fails at the pass's deadline; its slot returns only when the pass has ended."""
    engine = driven(
        replace(SLOW, max_slots=1, timetable=Timetable(0.0, {2: 60.0})),
        scheduler=SchedulerOptions(completion_timeout_milliseconds=1000),
    )
    hung = engine.submit(request("hello", max_new_tokens=50))
    in_flight(engine)
    engine.clock.advance(1.0)
    engine.turn()
    assert isinstance(drained(hung)[-1], Failed)
    waits = engine.submit(request("world", request_id="w", max_new_tokens=6))
    engine.turn()
    assert engine.engine.is_starved
    engine.clock.advance(60.0)
    engine.turn()
    assert not engine.engine.is_starved
    engine.run()
    assert expected_tokens("world", 6) == tokens_of(drained(waits))


def test_engine_whose_slots_never_come_back_stops():
    """Otherwise the line would wait for ever, and health would say that all is well."""
    engine = driven(
        replace(SLOW, max_slots=1, timetable=Timetable(0.0, {2: 1e9})),
        scheduler=SchedulerOptions(completion_timeout_milliseconds=1000),
    )
    engine.submit(request("hello", max_new_tokens=50))
    in_flight(engine)
    engine.clock.advance(1.0)
    engine.turn()
    engine.submit(request("world", request_id="w", max_new_tokens=6))
    engine.turn()
    engine.clock.advance(9.5)
    engine.turn()
    engine.clock.advance(0.5)
    with pytest.raises(EngineError, match="does not end"):
        engine.turn()


def test_slow_reader_ends_its_own_request_only():
    engine = slow_engine(capacity=2)
    slow = engine.submit(request("hello", max_new_tokens=50))
    reads = engine.submit(request("world", request_id="r", max_new_tokens=20))
    got = []
    for _ in range(200):
        if engine.engine.turn() is Turn.WAITING:
            engine.clock.advance(1.0)
        got += [message for message in [reads.outbox.take()] if message is not None]
        if isinstance(got[-1] if got else None, Ended):
            break
    assert expected_tokens("world", 20) == tokens_of(got)
    messages = drained(slow)
    assert isinstance(messages[-1].error, SlowConsumer)
    delivered = tokens_of(messages)
    assert expected_tokens("hello", len(delivered)) == delivered
    assert 0 == slots_in_use(engine)


def test_lagging_reader_gets_every_token_in_fewer_messages():
    engine = driven(capacity=2)
    ticket = engine.submit(request("hello", max_new_tokens=20))
    engine.run()
    messages = drained(ticket)
    assert 3 == len(messages)
    assert expected_tokens("hello", 20) == tokens_of(messages)


def test_request_that_cannot_begin_fails_alone_and_returns_its_slot():
    engine = driven()
    ticket = engine.submit(request("hello", max_new_tokens=3))

    def refuse(sampling):
        engine.model.target.sampler = original
        raise ZeroDivisionError("sampler")

    original = engine.model.target.sampler
    engine.model.target.sampler = refuse
    other = engine.submit(request("world", request_id="o", max_new_tokens=3))
    engine.run()
    (failed,) = drained(ticket)
    assert isinstance(failed.error, EngineError)
    assert expected_tokens("world", 3) == tokens_of(drained(other))
    assert 0 == slots_in_use(engine)


def test_evicted_requests_fail_at_their_next_boundary():
    engine = slow_engine()
    tickets = [
        engine.submit(request("hello", request_id=str(number), max_new_tokens=50))
        for number in range(3)
    ]
    in_flight(engine)
    engine.engine.evict(Draining())
    engine.run()
    assert [Draining] * 3 == [type(drained(ticket)[-1].error) for ticket in tickets]
    assert 0 == slots_in_use(engine)


def test_eviction_does_not_overrule_an_earlier_cancellation():
    engine = slow_engine()
    ticket = engine.submit(request("hello", max_new_tokens=50))
    in_flight(engine)
    ticket.cancellation.cancel()
    engine.engine.evict(Draining())
    engine.run()
    assert FinishReason.CANCELLED is drained(ticket)[-1].reason


def test_abort_fails_everything_at_once_and_refuses_what_comes_later():
    engine = slow_engine(Timetable(HANG))
    tickets = [
        engine.submit(request("hello", request_id=str(number), max_new_tokens=50))
        for number in range(3)
    ]
    in_flight(engine)
    engine.engine.abort(EngineStopped("gone"))
    assert [EngineStopped] * 3 == [type(drained(ticket)[-1].error) for ticket in tickets]
    assert 0 == engine.engine.snapshot.active_lanes
    with pytest.raises(EngineStopped):
        engine.submit(request("hello", request_id="late"))


def test_snapshot_counts_requests_by_the_end_that_was_told():
    engine = slow_engine()
    done = engine.submit(request("hello", max_new_tokens=3))
    timed_out = engine.submit(request("hello", request_id="t", max_new_tokens=50, timeout=1.5))
    waiting = engine.submit(request("hello", request_id="w"))
    in_flight(engine)
    waiting.cancellation.cancel()
    assert 2 == engine.engine.snapshot.scheduler.active_lanes
    engine.run()
    scheduler = engine.engine.snapshot.scheduler
    told = (
        scheduler.completed_requests,
        scheduler.failed_requests,
        scheduler.cancelled_requests,
    )
    assert (1, 1, 1) == told
    assert 0 == scheduler.active_lanes
    assert all(ticket.outbox.is_closed for ticket in (done, timed_out, waiting))


def test_snapshot_counts_cached_tokens_of_lanes_behind_prefill():
    engine = slow_engine()
    engine.submit(request("hello", max_new_tokens=50))
    in_flight(engine)
    assert 0 == engine.engine.snapshot.kv_cache_tokens
    engine.clock.advance(1.0)
    in_flight(engine)
    assert 5 == engine.engine.snapshot.kv_cache_tokens
    engine.run()
    assert 0 == engine.engine.snapshot.kv_cache_tokens


def test_thousands_of_requests_leave_nothing_behind():
    engine = driven(proposers=(loaded_proposer("draft"),))
    remains = []
    for number in range(2000):
        ticket = engine.submit(request("hello", request_id=str(number), max_new_tokens=2))
        remains.append(weakref.ref(ticket.outbox))
        engine.run()
        engine.touched.clear()
        assert 2 == len(tokens_of(drained(ticket)))
    del ticket
    gc.collect()
    assert [] == [each for each in remains if each() is not None]
    assert 2000 == engine.engine.snapshot.scheduler.completed_requests
