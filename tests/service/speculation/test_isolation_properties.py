"""Whatever goes wrong for one request, every other one gets its own output, and nothing leaks."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import event, given, settings
from hypothesis import strategies as st

from engines.scripted.cache import SlotState
from engines.scripted.clock import ManualClock
from engines.scripted.fault import Fault, FaultPlan, Operation
from engines.scripted.law import HashLaw, continuation
from engines.scripted.model import ScriptedSettings, scripted_proposer, scripted_target
from engines.scripted.proposer import ScriptedProposer
from engines.scripted.rules import FollowTarget
from engines.scripted.timetable import Timetable
from service.errors import CompletionDeadline, EngineError, RestoreFailed
from service.speculation.completion import CompletionCancellation
from service.speculation.lifecycle import RequestStatus
from service.speculation.observer import LifecycleStage
from service.speculation.options import SchedulerOptions
from tests.scenarios.driver import EOS, NEVER, CancelWhen, Plan, Play, TableDriver

LAW = HashLaw(tuple(range(ord("a"), ord("a") + 12)), end_one_in=40)
OF_ONE_LANE = (
    Operation.CHECKPOINT,
    Operation.ROWS,
    Operation.COMMIT,
    Operation.DRAFT,
    Operation.PROPOSER_OPEN,
    Operation.PROPOSER_COMMIT,
)
OF_A_PASS = (Operation.PREFILL, Operation.SUBMIT, Operation.COMPLETION)
LATE = 25.0


@dataclass(frozen=True, slots=True)
class Trouble:
    """What befalls one request: faults of its calls, a cancel, or neither."""

    faults: tuple[tuple[Operation, int], ...] = ()
    cancel: CancelWhen = NEVER


def faults(among: tuple[Operation, ...]) -> st.SearchStrategy[Trouble]:
    one = st.tuples(st.sampled_from(among), st.integers(1, 8))
    return st.builds(Trouble, faults=st.lists(one, min_size=1, max_size=2).map(tuple))


cancels = st.builds(
    Trouble,
    cancel=st.one_of(
        st.builds(CancelWhen, tokens=st.integers(1, 12)),
        st.builds(CancelWhen, stage=st.sampled_from(list(LifecycleStage)), nth=st.integers(1, 4)),
    ),
)
spared = st.just(Trouble())
seconds = st.sampled_from([0.5, 1.0, 1.0, 2.0])


@st.composite
def plans(draw: st.DrawFn, trouble: st.SearchStrategy[Trouble]) -> list[tuple[Plan, Trouble]]:
    drawn = []
    for index in range(draw(st.integers(2, 7))):
        befalls = draw(trouble)
        plan = Plan(
            str(index),
            tuple(draw(st.lists(st.sampled_from(LAW.alphabet), min_size=1, max_size=12))),
            max_tokens=draw(st.integers(2, 20)),
            width=draw(st.integers(1, 6)),
            cancel=befalls.cancel,
        )
        drawn.append((plan, befalls))
    return drawn


@dataclass(frozen=True, slots=True)
class World:
    """One drawn engine and scheduler."""

    settings: ScriptedSettings
    options: SchedulerOptions


@st.composite
def worlds(draw: st.DrawFn, late: st.SearchStrategy[float] = seconds) -> World:
    engine = ScriptedSettings(
        law=LAW,
        max_slots=draw(st.integers(2, 6)),
        max_context=64,
        timetable=Timetable(draw(seconds), draw(st.dictionaries(st.integers(1, 12), late))),
        is_synchronous=False,
    )
    options = SchedulerOptions(
        max_in_flight_verifications=draw(st.integers(1, 3)),
        lookahead_blocks=draw(st.sampled_from([0, 1])),
        max_pass_lanes=draw(st.sampled_from([1, 2, 8])),
        prefill_chunk_tokens=draw(st.sampled_from([3, 32])),
        completion_timeout_milliseconds=5000,
        completion_cancellation=draw(st.sampled_from(CompletionCancellation)),
    )
    return World(engine, options)


def play(world: World, drawn: list[tuple[Plan, Trouble]]) -> tuple[TableDriver, ScriptedProposer]:
    """Run all requests; each one's faults count from when it gets its slot."""
    plan_of_faults, troubles = FaultPlan(), {plan.name: trouble for plan, trouble in drawn}

    def arm(opened: Play) -> None:
        for where, nth in troubles[opened.plan.name].faults:
            error = EngineError(opened.plan.name)
            plan_of_faults.arm(Fault(where, error, opened.slot, nth))

    target = scripted_target(world.settings, ManualClock(), plan_of_faults)
    rule = FollowTarget(LAW, (True, True, False))
    proposer = scripted_proposer("draft", rule, faults=plan_of_faults)
    driver = TableDriver(target, world.options, arm)
    for index, (plan, _) in enumerate(drawn):
        driver.submit(plan if index % 3 == 2 else _with(plan, proposer))
    driver.run()
    return driver, proposer


def _with(plan: Plan, proposer: ScriptedProposer) -> Plan:
    return Plan(
        plan.name,
        plan.prompt,
        plan.max_tokens,
        proposer,
        width=plan.width,
        cancel=plan.cancel,
    )


def own_output(plan: Plan) -> tuple[int, ...]:
    return continuation(LAW, plan.prompt, plan.max_tokens, EOS)


def assert_nothing_leaks(driver: TableDriver, proposer: ScriptedProposer) -> None:
    """Slots come back unless their contents are unknowable, and proposers forget everyone."""
    driver.clock.advance(2 * LATE)
    driver.target.device.catch_up()
    lost = {
        ended.slot
        for ended in driver.plays.values()
        if ended.ended and isinstance(ended.ended.error, RestoreFailed)
    }
    for slot in range(driver.target.limits.max_slots):
        expected = SlotState.ABANDONED if slot in lost else SlotState.FREE
        assert expected is driver.target.cache.state(slot)
    assert frozenset() == proposer.open_slots


def assert_ends_well(plan: Plan, ended: Play) -> None:
    """Whatever ended it, a request has delivered a beginning of its own output, once."""
    assert ended.ended is not None
    whole = own_output(plan)
    assert ended.ended.tokens == ended.tokens == whole[: len(ended.tokens)]
    assert (ended.ended.error is None) == (ended.ended.status is not RequestStatus.FAILED)
    if ended.ended.status is RequestStatus.COMPLETED:
        assert whole == ended.tokens


@settings(max_examples=200)
@given(worlds(), plans(st.one_of(spared, faults(OF_ONE_LANE), cancels)))
def test_fault_or_cancel_of_one_request_leaves_the_others_alone(
    world: World, drawn: list[tuple[Plan, Trouble]]
) -> None:
    """A lane's own faults end that lane; requests that were spared complete."""
    driver, proposer = play(world, drawn)

    for plan, befalls in drawn:
        ended = driver.plays[plan.name]
        assert_ends_well(plan, ended)
        assert ended.ended is not None
        if befalls == Trouble():
            assert RequestStatus.COMPLETED is ended.ended.status
        if ended.ended.error is not None:
            assert plan.name == str(ended.ended.error)
        event(f"{ended.ended.status.value}")
    assert_nothing_leaks(driver, proposer)


@settings(max_examples=150)
@given(worlds(), plans(st.one_of(spared, faults((*OF_A_PASS, Operation.RESTORE)), cancels)))
def test_fault_of_a_pass_ends_no_lane_outside_it(
    world: World, drawn: list[tuple[Plan, Trouble]]
) -> None:
    """Lanes of a failed pass fail with its error; a slot is lost only to a failed restore."""
    driver, proposer = play(world, drawn)

    for plan, _ in drawn:
        ended = driver.plays[plan.name]
        assert_ends_well(plan, ended)
        error = ended.ended.error if ended.ended else None
        cause = error.__cause__ if isinstance(error, RestoreFailed) else error
        assert cause is None or str(cause) in driver.plays
        event(f"lost: {isinstance(error, RestoreFailed)}")
    assert_nothing_leaks(driver, proposer)


@settings(max_examples=150)
@given(worlds(st.sampled_from([1.0, LATE])), plans(st.one_of(spared, cancels)))
def test_pass_that_outlives_its_deadline_harms_nobody_else(
    world: World, drawn: list[tuple[Plan, Trouble]]
) -> None:
    """Late writes land in slots that nobody has got since, whichever disposition is applied."""
    driver, proposer = play(world, drawn)

    for plan, _ in drawn:
        ended = driver.plays[plan.name]
        assert_ends_well(plan, ended)
        assert ended.ended is not None
        error = ended.ended.error
        assert error is None or isinstance(error, CompletionDeadline)
        event(f"{ended.ended.status.value}")
    assert_nothing_leaks(driver, proposer)
