"""What many steps of one output may take together."""

from service.text.constraints.allowance import Allowance
from service.text.constraints.limits import Limits


def charged(*steps: float) -> Allowance:
    """Return an allowance of 8 beyond 2 a step, after some steps."""
    allowance = Allowance(Limits(step_seconds=2.0, excess_seconds=8.0))
    for seconds in steps:
        allowance.charge(seconds)
    return allowance


def test_slow_steps_add_up():
    assert not charged(6.0, 6.0).is_spent
    assert charged(6.0, 6.0, 3.0).is_spent
    assert charged(11.0).is_spent


def test_quick_steps_make_good_what_slow_ones_took():
    assert not charged(10.0, 0.0, 4.0, 0.0, 4.0).is_spent


def test_quick_steps_save_nothing_up():
    assert charged(*[0.0] * 99, 11.0).is_spent


def test_spent_allowance_stays_spent():
    assert charged(11.0, *[0.0] * 99).is_spent
