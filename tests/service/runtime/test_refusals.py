import pytest

from service.errors import FieldViolation, InvalidRequest, NoSuchRequest
from service.runtime.refusals import Refusals

A, B = FieldViolation("a", "is bad"), FieldViolation("b", "is worse")


def failing(error: Exception):
    def step() -> int:
        raise error

    return step


def test_violations_of_all_steps_are_named_together_and_once():
    refusals = Refusals([A])
    assert 0 == refusals.attempt(failing(InvalidRequest(A, B)), 0)
    with pytest.raises(InvalidRequest) as caught:
        refusals.settle()
    assert (A, B) == caught.value.violations


def test_step_that_refuses_nothing_gives_what_it_returns():
    refusals = Refusals()
    assert 7 == refusals.attempt(lambda: 7, 0)
    refusals.settle()


def test_other_failure_comes_after_refused_fields():
    other = failing(NoSuchRequest("r"))
    with pytest.raises(NoSuchRequest):
        Refusals().attempt(other, 0)
    with pytest.raises(InvalidRequest):
        Refusals([A]).attempt(other, 0)
