"""Work on the scripted device: when it takes effect, and who hears of it."""

import threading

import pytest

from engines.scripted.clock import ManualClock, MonotonicClock
from engines.scripted.device import HANG, Device, Effects, WorkState
from service.errors import EngineError
from service.speculation.completion import BoundedWait, Completed, CompletionCancellation

NATIVE = CompletionCancellation.NATIVE_CANCEL
QUARANTINE = CompletionCancellation.QUARANTINE_UNTIL_COMPLETE


class Trace(list):
    """What work did, in order."""

    def effects(self, name: str, error: EngineError | None = None) -> Effects:
        return Effects(
            run=lambda: self.append(f"{name} runs"),
            settle=lambda: self.append(f"{name} settles"),
            on_success=lambda: self.append(f"{name} succeeds"),
            error=error,
        )


@pytest.fixture
def trace() -> Trace:
    return Trace()


@pytest.fixture
def device() -> Device:
    return Device(ManualClock())


def test_work_without_duration_is_done_when_submitted(device, trace) -> None:
    work = device.submit(0.0, trace.effects("a"))

    assert work.is_complete()
    assert ["a runs", "a settles"] == trace


def test_work_takes_effect_in_the_order_of_its_ends(device, trace) -> None:
    device.submit(3.0, trace.effects("slow"))
    device.submit(1.0, trace.effects("fast"))

    device.clock.advance(5.0)
    device.catch_up()

    assert ["fast runs", "fast settles", "slow runs", "slow settles"] == trace


def test_work_does_nothing_until_somebody_looks(device, trace) -> None:
    """The engine's thread alone writes: time passing does not."""
    work = device.submit(1.0, trace.effects("a"))
    device.clock.advance(1.0)

    assert [] == trace
    assert work.is_complete()
    assert "a runs" == trace[0]


def test_synchronous_device_waits_within_the_submission(trace) -> None:
    device = Device(ManualClock(), is_synchronous=True)

    work = device.submit(2.0, trace.effects("a"))

    assert WorkState.ENDED is work.state
    assert 2.0 == device.clock.now()


def test_success_is_told_by_the_wait_and_not_by_the_end(device, trace) -> None:
    work = device.submit(1.0, trace.effects("a"))
    device.clock.advance(1.0)
    assert work.is_complete()
    assert "a succeeds" not in trace

    work.wait()

    assert "a succeeds" == trace[-1]


def test_failed_work_has_run_and_never_succeeds(device, trace) -> None:
    error = EngineError("scripted")
    work = device.submit(1.0, trace.effects("a", error))

    for _ in range(2):
        with pytest.raises(EngineError) as caught:
            work.wait()
        assert error is caught.value

    assert ["a runs", "a settles"] == trace


def test_unbounded_wait_for_hung_work_is_refused(device, trace) -> None:
    """A test that would hang fails instead."""
    with pytest.raises(EngineError, match="hangs"):
        device.submit(HANG, trace.effects("a")).wait()


def test_bounded_wait_takes_no_more_time_than_the_work(device, trace) -> None:
    work = device.submit(1.0, trace.effects("a"))

    assert Completed() == work.wait_bounded(BoundedWait(60.0, NATIVE))
    assert 1.0 == device.clock.now()


def test_bounded_wait_takes_no_more_time_than_its_bound(device, trace) -> None:
    work = device.submit(HANG, trace.effects("a"))

    work.wait_bounded(BoundedWait(60.0, QUARANTINE))

    assert 60.0 == device.clock.now()
    assert WorkState.QUARANTINED is work.state


def test_native_cancel_settles_what_never_ran(device, trace) -> None:
    work = device.submit(5.0, trace.effects("a"))
    work.wait_bounded(BoundedWait(1.0, NATIVE))
    device.clock.advance(10.0)
    device.catch_up()

    assert ["a settles"] == trace
    with pytest.raises(EngineError):
        work.wait()


def test_quarantined_work_runs_late(device, trace) -> None:
    work = device.submit(5.0, trace.effects("a"))
    work.wait_bounded(BoundedWait(1.0, QUARANTINE))
    assert [] == trace

    device.occupy(4.0)

    assert ["a runs", "a settles"] == trace


def test_drafting_lets_submitted_work_go_on(device, trace) -> None:
    device.submit(1.0, trace.effects("a"))

    device.occupy(0.5)
    assert [] == trace
    device.occupy(0.5)

    assert "a runs" == trace[0]


def test_callbacks_of_real_time_come_from_another_thread(trace) -> None:
    """The engine's thread sleeps on them, and then looks."""
    device, told = Device(MonotonicClock()), threading.Event()
    work = device.submit(0.002, trace.effects("a"))

    work.on_complete(told.set)

    assert told.wait(timeout=60.0)
    assert work.is_complete()
