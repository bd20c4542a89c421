"""What the contract suite cannot see of the scripted target: that mistakes show."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engines.scripted.clock import ManualClock
from engines.scripted.device import HANG
from engines.scripted.fault import Fault, FaultPlan, Operation
from engines.scripted.law import HashLaw
from engines.scripted.model import ScriptedSettings, scripted_target
from engines.scripted.target import seed_of
from engines.scripted.timetable import Timetable
from service.errors import EngineError
from service.speculation.capability import ExecutionTopology
from service.speculation.contract import CommitInput, CommitResult, ComponentTimings
from tests.contract.lanes import DrivenLane, next_rows, open_lane, verify

PROMPT = (7, 3, 11)
ERROR = EngineError("scripted")
SLOW = ScriptedSettings(law=HashLaw(), timetable=Timetable(2.0, {3: 5.0}), is_synchronous=False)


def target_with(*faults: Fault):
    return scripted_target(ScriptedSettings(law=HashLaw()), faults=FaultPlan(faults))


def test_modes_have_their_topology_and_overlap() -> None:
    blocking, overlapping = ScriptedSettings().limits(), SLOW.limits()

    assert (ExecutionTopology.SINGLE, False) == (
        blocking.topology,
        blocking.can_overlap_drafting,
    )
    assert (ExecutionTopology.SAME_DEVICE_SPLIT, True) == (
        overlapping.topology,
        overlapping.can_overlap_drafting,
    )


def test_synchronous_pass_that_hangs_is_refused() -> None:
    with pytest.raises(ValueError, match="hang"):
        ScriptedSettings(timetable=Timetable(0.0, {2: HANG}))


def test_forgotten_restore_stops_the_next_pass() -> None:
    """A pass that was neither committed nor restored leaves its boundary behind its inputs."""
    lane = open_lane(target_with(), PROMPT, 21)
    verify(lane.target, (lane, (4, 5)))

    assert len(PROMPT) + 3 == lane.target.checkpoint(lane.slot)


def test_commit_that_is_off_by_one_changes_what_follows() -> None:
    """Either way: a missing input and a rejected one both change every later row."""
    rows = set()
    for inputs in (1, 2, 3):
        lane = open_lane(target_with(), PROMPT, 21)
        output = verify(lane.target, (lane, (4, 5))).output
        lane.target.commit(output, [lane.kept(inputs)])
        lane.generated = (21, 4, 30)
        rows.add(next_rows(lane)[0])

    assert 3 == len(rows)


def test_commit_of_a_slots_former_lane_is_an_error() -> None:
    lane = open_lane(target_with(), PROMPT, 21)
    output = verify(lane.target, (lane, (4,))).output
    lane.target.close(lane.slot)
    assert lane.slot == lane.target.open()

    (result,) = lane.target.commit(output, [lane.kept(1)])

    assert isinstance(result, EngineError)
    assert 0 == lane.target.checkpoint(lane.slot)


def test_commit_gives_the_seed_of_the_cached_tokens() -> None:
    lane = open_lane(target_with(), PROMPT, 21)
    output = verify(lane.target, (lane, (4, 5))).output

    (result,) = lane.target.commit(output, [lane.kept(2)])

    assert CommitResult(seed_of((*PROMPT, 21, 4))) == result
    assert seed_of((*PROMPT, 21)) != seed_of((*PROMPT, 21, 4))


def test_late_write_reaches_a_slot_that_was_let_go_too_early() -> None:
    """The mistake that quarantine prevents would show in the next lane's rows."""
    target = scripted_target(replace(SLOW, timetable=Timetable(1.0, {2: 90.0})), ManualClock())
    lane = open_lane(target, PROMPT, 21)
    target.submit([lane.inputs((4,))])
    target.cache.end_write(lane.slot)
    target.close(lane.slot)
    intruder = open_lane(target, (1, 2, 3, 4, 5, 6), 21)
    assert lane.slot == intruder.slot

    before = next_rows(intruder)
    target.cache.begin_write(lane.slot)
    target.device.clock.advance(90.0)

    assert before != next_rows(intruder)


def test_timings_follow_the_timetable() -> None:
    target = scripted_target(SLOW, ManualClock())
    lane = open_lane(target, PROMPT, 21)

    timings = [target.take_timings(verify(target, (lane, ())).output) for _ in range(3)]

    assert [2.0, 5.0, 2.0] == [one.target_verification for one in timings if one]
    assert isinstance(timings[0], ComponentTimings)


@pytest.mark.parametrize(
    "where", [Operation.OPEN, Operation.CLOSE, Operation.CHECKPOINT, Operation.RESTORE]
)
def test_fault_of_a_slot_operation_is_raised_and_changes_nothing(where) -> None:
    target = target_with()
    slot = target.open()
    calls = {
        Operation.OPEN: target.open,
        Operation.CLOSE: lambda: target.close(slot),
        Operation.CHECKPOINT: lambda: target.checkpoint(slot),
        Operation.RESTORE: lambda: target.restore(slot, 0),
    }
    target.faults.arm(Fault(where, ERROR))

    with pytest.raises(EngineError) as caught:
        calls[where]()

    assert ERROR is caught.value
    assert 0 == target.checkpoint(slot)
    calls[where]()


def test_fault_of_a_submission_submits_nothing() -> None:
    target = target_with(Fault(Operation.PREFILL, ERROR, slot=0))
    lane = DrivenLane(target, target.open(), PROMPT)

    with pytest.raises(EngineError):
        target.prefill([lane.chunk(PROMPT)])

    assert (0, 0) == (target.passes, target.checkpoint(lane.slot))


def test_fault_of_one_lanes_rows_spares_the_others() -> None:
    target = target_with(Fault(Operation.ROWS, ERROR, slot=0, nth=2))
    struck, spared = open_lane(target, PROMPT, 21), open_lane(target, PROMPT, 22)
    output = verify(target, (struck, ()), (spared, ())).output

    with pytest.raises(EngineError):
        struck.rows(output, 0, 1)

    assert 1 == len(spared.rows(output, 1, 1))


@pytest.mark.parametrize("slot", [None, 1])
def test_fault_of_a_commit_is_the_calls_or_the_lanes(slot) -> None:
    target = target_with()
    lanes = [open_lane(target, PROMPT, 21), open_lane(target, PROMPT, 22)]
    output = verify(target, *((lane, ()) for lane in lanes)).output
    target.faults.arm(Fault(Operation.COMMIT, ERROR, slot=slot))
    commits = [CommitInput(index, lane.slot, lane.base, 1) for index, lane in enumerate(lanes)]

    if slot is None:
        with pytest.raises(EngineError):
            target.commit(output, commits)
    else:
        kept, refused = target.commit(output, commits)
        assert (ERROR, CommitResult) == (refused, type(kept))
