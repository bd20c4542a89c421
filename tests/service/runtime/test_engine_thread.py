import threading

import pytest

from service.errors import Draining, EngineError, EngineStopped, PublicationError
from service.runtime.engine_thread import EngineThread
from service.speculation.table import Turn


class RecordingEvent:
    """A wake-up that never sleeps, and notes for how long it was asked to."""

    def __init__(self):
        self.log = []

    def set(self):
        self.log.append("set")

    def clear(self):
        self.log.append("clear")

    def wait(self, timeout):
        self.log.append(timeout)


class ScriptedEngine:
    """Plays turns; an exception among them is raised."""

    def __init__(self, *turns, deadline=None, is_starved=False):
        self.turns = list(turns)
        self.deadline = deadline
        self.is_starved = is_starved
        self.log = []
        self.aborted = threading.Event()

    def turn(self):
        self.log.append("turn")
        turn = self.turns.pop(0) if self.turns else Turn.IDLE
        if isinstance(turn, Exception):
            raise turn
        return turn

    def on_progress(self, callback):
        self.log.append("on_progress")
        callback()

    def next_deadline(self):
        return self.deadline

    def evict(self, verdict):
        self.log.append(("evict", type(verdict)))

    def abort(self, error):
        self.log.append(("abort", type(error)))
        self.error = error
        self.aborted.set()


def cycled(*turns, now=10.0, **engine):
    wake = RecordingEvent()
    thread = EngineThread("test", wake, lambda: now, lambda: None)
    scripted = ScriptedEngine(*turns, **engine)
    thread.cycle(scripted)
    return wake.log, scripted.log


def test_cycle_that_worked_does_not_sleep():
    assert (["clear"], ["turn"]) == cycled(Turn.WORKED)


def test_cycle_that_is_idle_sleeps_until_it_is_woken():
    assert (["clear", None], ["turn"]) == cycled(Turn.IDLE)


def test_cycle_that_waits_asks_to_be_called_and_sleeps_to_the_next_deadline():
    assert (["clear", "set", 2.5], ["turn", "on_progress"]) == cycled(Turn.WAITING, deadline=12.5)


def test_cycle_whose_deadline_has_passed_never_sleeps_for_nothing():
    assert ["clear", "set", 0.001] == cycled(Turn.WAITING, deadline=10.0)[0]


def test_cycle_sleeps_no_longer_than_the_platform_can():
    """A client may ask for a timeout of ten thousand years."""
    (_, _, slept), _ = cycled(Turn.WAITING, deadline=3e11)
    assert slept <= threading.TIMEOUT_MAX


def test_cycle_that_is_starved_of_slots_looks_again_soon():
    assert ["clear", 0.05] == cycled(Turn.IDLE, is_starved=True)[0]
    assert ["clear", 0.05] == cycled(Turn.IDLE, is_starved=True, deadline=99.0)[0]
    assert ["clear", 0.02] == [
        round(entry, 6) if isinstance(entry, float) else entry
        for entry in cycled(Turn.IDLE, is_starved=True, deadline=10.02)[0]
    ]


def test_eviction_is_done_once_on_the_engines_own_thread():
    wake = RecordingEvent()
    thread = EngineThread("test", wake, lambda: 0.0, lambda: None)
    engine = ScriptedEngine()
    thread.evict(Draining())
    assert ["set"] == wake.log
    thread.cycle(engine)
    thread.cycle(engine)
    assert [("evict", Draining), "turn", "turn"] == engine.log


def run_to_the_end(engine):
    stopped = threading.Event()
    thread = EngineThread("test", threading.Event(), lambda: 0.0, stopped.set)
    thread.start(engine)
    assert stopped.wait(10)
    thread.join()
    return thread


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        (EngineError("the device is lost"), "the device is lost"),
        (PublicationError("full"), "output publication failed: full"),
        (ZeroDivisionError("a secret prompt"), "ZeroDivisionError"),
    ],
)
def test_fault_that_escapes_a_turn_stops_the_engine(fault, cause):
    """A foreign error's text stays in the log: it may hold what is not for clients."""
    engine = ScriptedEngine(Turn.WORKED, fault)
    thread = run_to_the_end(engine)
    assert not thread.is_running
    assert isinstance(engine.error, EngineStopped)
    assert cause == engine.error.cause


def test_stopped_thread_aborts_what_is_left_as_drained():
    engine = ScriptedEngine()
    stopped = threading.Event()
    thread = EngineThread("test", threading.Event(), lambda: 0.0, stopped.set)
    thread.start(engine)
    assert thread.is_running
    thread.stop()
    thread.join()
    assert stopped.is_set()
    assert not thread.is_running
    assert ("abort", Draining) == engine.log[-1]


def test_thread_that_never_started_can_be_joined():
    thread = EngineThread("test", threading.Event(), lambda: 0.0, lambda: None)
    thread.join()
    assert not thread.is_running
