"""Play a scenario through a request table."""

from __future__ import annotations

from dataclasses import dataclass

from engines.scripted.clock import ManualClock
from engines.scripted.fault import Fault, FaultPlan
from engines.scripted.law import Law, continuation
from engines.scripted.model import DRAFT_RULES, draft_rule, scripted_proposer, scripted_target
from engines.scripted.proposer import ScriptedProposer
from engines.scripted.scenario import (
    AfterSteps,
    AtTime,
    CancelAfterTokens,
    CancelAtStage,
    Scenario,
    ScenarioFault,
    ScenarioRequest,
)
from service.errors import EngineError
from service.speculation.contract import Tokens
from service.speculation.observer import LifecycleStage
from service.speculation.options import SchedulerOptions
from tests.scenarios.driver import EOS, MOST_STEPS, NEVER, CancelWhen, Plan, Play, TableDriver


@dataclass(slots=True)
class Stage:
    """An engine and a table, and the faults that are armed as requests get their slots."""

    scenario: Scenario
    faults: FaultPlan
    driver: TableDriver
    proposers: dict[str, ScriptedProposer]


def play_scenario(scenario: Scenario) -> TableDriver:
    """Let every request arrive, and step until all have ended.

    Once nothing else is left to run, the next arrival in line comes at once.
    """
    stage = _stage(scenario)
    pending = list(scenario.requests)
    for _ in range(MOST_STEPS):
        due = [request for request in pending if _has_come(request, stage.driver)]
        if not due and stage.driver.is_idle:
            due = pending[:1]
        for request in due:
            _let_time_come(request, stage.driver)
            pending.remove(request)
            stage.driver.submit(_plan(request, stage.proposers))
        if not pending and stage.driver.is_idle:
            return stage.driver
        stage.driver.step()
    raise AssertionError("the scenario does not come to an end")


def _stage(scenario: Scenario) -> Stage:
    faults = FaultPlan(_fault(fault, None) for fault in scenario.faults if fault.request is None)
    target = scripted_target(scenario.settings, ManualClock(), faults)

    def arm(play: Play) -> None:
        for fault in scenario.faults:
            if fault.request == play.plan.name:
                faults.arm(_fault(fault, play.slot))

    law = scenario.settings.law
    proposers = {
        name: scripted_proposer(name, draft_rule(name, law), faults=faults) for name in DRAFT_RULES
    }
    return Stage(scenario, faults, TableDriver(target, options_of(scenario), arm), proposers)


def options_of(scenario: Scenario) -> SchedulerOptions:
    """Return the scheduler options that a scenario asks for."""
    wanted = scenario.scheduler
    options = SchedulerOptions(
        max_in_flight_verifications=wanted.passes_in_flight,
        max_pass_lanes=wanted.pass_lanes,
        prefill_chunk_tokens=wanted.prefill_chunk,
    )
    return options.with_lookahead(enabled=wanted.lookahead).with_completion_wait(
        wanted.timeout_seconds, wanted.cancellation
    )


def _fault(fault: ScenarioFault, slot: int | None) -> Fault:
    error = EngineError(fault.message)
    return Fault(fault.where, error, slot, nth=fault.nth, times=fault.times)


def _has_come(request: ScenarioRequest, driver: TableDriver) -> bool:
    match request.arrival:
        case AfterSteps(steps=steps):
            return driver.table.statistics.verification_passes >= steps
        case AtTime(seconds=seconds):
            return driver.clock.now() >= seconds


def _let_time_come(request: ScenarioRequest, driver: TableDriver) -> None:
    if isinstance(request.arrival, AtTime):
        driver.clock.wait_until(request.arrival.seconds)


def _plan(request: ScenarioRequest, proposers: dict[str, ScriptedProposer]) -> Plan:
    return Plan(
        name=request.name,
        prompt=request.prompt,
        max_tokens=request.max_tokens,
        proposer=None if request.draft is None else proposers[request.draft],
        width=request.width,
        is_fixed=request.is_fixed,
        lookahead=request.lookahead,
        config=request.config,
        seed=request.seed,
        cancel=_cancel(request),
    )


def _cancel(request: ScenarioRequest) -> CancelWhen:
    match request.cancel:
        case CancelAfterTokens(tokens=tokens):
            return CancelWhen(tokens=tokens)
        case CancelAtStage(stage=stage, nth=nth):
            return CancelWhen(stage=LifecycleStage(stage), nth=nth)
        case None:
            return NEVER


def greedy_output(law: Law, request: ScenarioRequest, context: int) -> Tokens:
    """Return what the target alone gives a greedy request."""
    length = min(request.max_tokens, context - len(request.prompt))
    return continuation(law, request.prompt, length, EOS)
