"""Manual time moves only by hand; the machine's calls back from a thread of its own."""

import threading

from engines.scripted.clock import ManualClock, MonotonicClock


def test_manual_clock_stands_still_until_advanced() -> None:
    clock = ManualClock()

    assert 0.0 == clock.now()
    clock.advance(1.5)
    clock.wait_until(1.0)
    assert 1.5 == clock.now()


def test_manual_clock_calls_in_the_order_of_time() -> None:
    clock, calls = ManualClock(), []
    clock.call_at(3.0, lambda: calls.append(("three", clock.now())))
    clock.call_at(1.0, lambda: calls.append(("one", clock.now())))
    clock.call_at(9.0, lambda: calls.append(("nine", clock.now())))

    assert 1.0 == clock.next_call()
    clock.wait_until(5.0)

    assert [("one", 1.0), ("three", 3.0)] == calls
    assert (5.0, 9.0) == (clock.now(), clock.next_call())


def test_manual_clock_makes_calls_that_calls_ask_for() -> None:
    clock, calls = ManualClock(), []
    clock.call_at(1.0, lambda: clock.call_at(2.0, lambda: calls.append(clock.now())))

    clock.advance(5.0)

    assert [2.0] == calls
    assert clock.next_call() is None


def test_monotonic_clock_calls_back_when_the_time_has_come() -> None:
    clock, called = MonotonicClock(), threading.Event()
    when, seen = clock.now() + 0.001, []

    clock.call_at(when, lambda: (seen.append(clock.now()), called.set()))

    assert called.wait(timeout=60.0)
    assert seen[0] >= when


def test_monotonic_clock_waits_until_a_time() -> None:
    clock = MonotonicClock()
    when = clock.now() + 0.001

    clock.wait_until(when)

    assert clock.now() >= when
