"""Faults strike the calls that they name, and no others."""

import pytest

from engines.scripted.fault import Fault, FaultPlan, Operation
from service.errors import EngineError

ERROR = EngineError("scripted")


def errors(plan: FaultPlan, calls: int, *slots: int):
    return [plan.first_error(Operation.ROWS, *slots) for _ in range(calls)]


def test_fault_strikes_its_nth_call_once() -> None:
    plan = FaultPlan([Fault(Operation.ROWS, ERROR, nth=2)])

    assert [None, ERROR, None, None] == errors(plan, 4)


def test_fault_strikes_as_often_as_it_says() -> None:
    plan = FaultPlan([Fault(Operation.ROWS, ERROR, nth=2, times=2)])

    assert [None, ERROR, ERROR, None] == errors(plan, 4)


def test_fault_of_a_slot_counts_calls_for_it_only() -> None:
    plan = FaultPlan([Fault(Operation.ROWS, ERROR, slot=3, nth=2)])

    assert [None, None] == errors(plan, 2, 4)
    assert [None, ERROR] == errors(plan, 2, 3, 4)


def test_fault_counts_from_when_it_was_armed() -> None:
    plan = FaultPlan()
    errors(plan, 5)

    plan.arm(Fault(Operation.ROWS, ERROR))

    assert [ERROR, None] == errors(plan, 2)


def test_fault_that_is_disarmed_spares_the_slots_next_lane() -> None:
    plan = FaultPlan([Fault(Operation.ROWS, ERROR, slot=3), Fault(Operation.ROWS, ERROR, slot=4)])

    plan.disarm(3)

    assert [None, ERROR] == [*errors(plan, 1, 3), *errors(plan, 1, 4)]


def test_fault_of_another_operation_stays_away() -> None:
    plan = FaultPlan([Fault(Operation.COMMIT, ERROR)])

    plan.strike(Operation.ROWS, 0)
    with pytest.raises(EngineError):
        plan.strike(Operation.COMMIT, 0)


def test_lane_part_of_a_call_does_not_count_as_another_call() -> None:
    plan = FaultPlan([Fault(Operation.COMMIT, ERROR, nth=2)])

    plan.strike(Operation.COMMIT)
    plan.strike_lane(Operation.COMMIT, 0)
    plan.strike_lane(Operation.COMMIT, 1)
    with pytest.raises(EngineError):
        plan.strike(Operation.COMMIT)
