"""Every scenario ends as its file says, and whatever it delivers is the target's own output."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from engines.scripted.cache import SlotState
from engines.scripted.fault import Operation
from engines.scripted.scenario import Scenario, ScenarioRequest
from engines.scripted.scenario_file import STAGES, load_scenario
from engines.scripted.vocabulary import decode
from service.errors import CompletionDeadline, RestoreFailed
from service.speculation.contract import Tokens
from service.speculation.lifecycle import RequestStatus
from service.speculation.observer import LifecycleStage
from tests.scenarios.driver import TableDriver
from tests.scenarios.player import greedy_output, play_scenario

FILES = {path.stem: path for path in sorted((Path(__file__).parent / "files").glob("*.toml"))}


def played(name: str) -> tuple[Scenario, TableDriver]:
    scenario = load_scenario(FILES[name])
    return scenario, play_scenario(scenario)


def own_output(scenario: Scenario, request: ScenarioRequest) -> Tokens:
    """Return what the request gets from the engine when nothing else happens to it."""
    if request.config.temperature == 0.0:
        return greedy_output(scenario.settings.law, request, scenario.settings.max_context)
    alone = replace(scenario, requests=(request,), faults=())
    return play_scenario(alone).plays[request.name].tokens


@pytest.mark.parametrize("name", FILES)
def test_scenario_ends_as_it_says(name) -> None:
    """Completed outputs are whole and all others are beginnings of the whole."""
    scenario, driver = played(name)

    for request in scenario.requests:
        play, whole = driver.plays[request.name], own_output(scenario, request)
        assert play.ended is not None
        assert (request.name, request.status) == (request.name, play.ended.status.value)
        assert play.ended.tokens == play.tokens == whole[: len(play.tokens)]
        assert (request.status == "failed") == (play.ended.error is not None)
        assert request.status != "completed" or play.tokens == whole
        assert request.output in {None, decode(play.tokens)}
    statistics = driver.table.statistics
    ends = [request.status for request in scenario.requests]
    assert ends.count("completed") == statistics.completed_requests
    assert ends.count("cancelled") == statistics.cancelled_requests
    assert ends.count("failed") == statistics.failed_requests


@pytest.mark.parametrize("name", FILES)
def test_scenario_repeats_exactly(name) -> None:
    """Nothing depends on the machine: not the outputs, not the rounds, not the time."""
    (_, first), (_, second) = played(name), played(name)

    assert first.clock.now() == second.clock.now()
    assert [play.rounds for play in first.plays.values()] == [
        play.rounds for play in second.plays.values()
    ]


def test_arrivals_come_after_their_steps_and_times() -> None:
    _, driver = played("arrivals")

    order = list(driver.plays)

    assert ["first", "after three steps", "after five steps", "waits for a slot"] == order[:4]
    assert "long after the others" == order[-1]
    assert driver.clock.now() > 1000.0


def test_faults_reach_their_lanes_with_their_message() -> None:
    _, driver = played("one-lane-fails")

    ended = driver.plays["fails"].ended

    assert "a row is not a number" == str(ended.error)


def test_hung_pass_writes_late_into_slots_that_nobody_got() -> None:
    """Both lanes fail by the deadline, and their slots come back only after the late write."""
    _, driver = played("hung-pass")

    for name in ("hangs", "hangs with it"):
        assert isinstance(driver.plays[name].ended.error, CompletionDeadline)
    slots = {name: play.slot for name, play in driver.plays.items()}
    assert slots["takes the free slot"] == slots["takes it next"] == 2
    late = ("takes a slot that was written late", "takes another", "takes the last")
    assert {0, 1, 2} == {slots[name] for name in late}


def test_restore_that_fails_costs_the_slot() -> None:
    _, driver = played("pass-fails")
    lost = driver.plays["fails and loses its slot"]

    assert isinstance(lost.ended.error, RestoreFailed)
    assert "the device gave up" == str(lost.ended.error.__cause__)
    assert SlotState.ABANDONED is driver.target.cache.state(lost.slot)
    assert lost.slot not in {
        play.slot for name, play in driver.plays.items() if name.startswith("comes later")
    }


def test_cancel_in_flight_publishes_nothing_further() -> None:
    """Whatever came before stays; the round in flight is dropped."""
    _, driver = played("cancels")
    play = driver.plays["while a pass is in flight"]

    assert RequestStatus.CANCELLED is play.ended.status
    assert [1, 0] == [len(round_.tokens) for round_ in play.rounds]
    assert LifecycleStage.COMPLETION in play.stages


def test_passes_overtook_each_other() -> None:
    _, driver = played("out-of-order")

    assert 3 == driver.table.statistics.peak_in_flight_verifications


def test_stages_of_files_are_those_of_the_lifecycle() -> None:
    assert tuple(stage.value for stage in LifecycleStage) == STAGES


def test_faults_at_every_boundary_are_all_met() -> None:
    """Each fault of the file strikes: none is declared for a call that never comes."""
    scenario, driver = played("every-boundary")

    messages = {str(play.ended.error) for play in driver.plays.values() if play.ended.error}

    assert {fault.message for fault in scenario.faults} == messages
    assert {Operation.ROWS, Operation.DRAFT, Operation.COMMIT} <= {
        fault.where for fault in scenario.faults
    }
