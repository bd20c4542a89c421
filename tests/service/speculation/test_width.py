"""The width that pays, and the estimate of acceptance that it is decided on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.speculation.cost import CostCurve
from service.speculation.width import INITIAL_ACCEPTANCE, MARGIN, AcceptanceEstimate, paying_width

STEEP = CostCurve.from_points({(1, 1): 10.0, (1, 2): 14.2})
MEASURED = CostCurve.from_points(
    {(1, 1): 9.7, (1, 2): 12.0, (1, 4): 15.0, (1, 5): 16.4, (1, 9): 22.0}
)
FLAT = CostCurve.from_points({(1, 1): 10.0, (1, 2): 10.1})


def chain(acceptance: float, width: int = 8):
    return tuple(acceptance ** (position + 1) for position in range(width))


@pytest.mark.parametrize(
    ("curve", "acceptance", "width"),
    [
        (MEASURED, 0.1, 0),
        (MEASURED, 0.36, 1),
        (MEASURED, 0.6, 2),
        (MEASURED, 0.95, 8),
        (STEEP, 0.36, 0),
        (STEEP, 0.6, 1),
        (FLAT, 0.1, 1),
        (FLAT, 0.6, 7),
        (FLAT, 0.0, 0),
    ],
)
def test_width_follows_acceptance_and_cost(curve, acceptance, width) -> None:
    assert width == paying_width([chain(acceptance)], curve.by_width(1, 8), 1)


OUTLOOKS = st.lists(
    st.lists(st.floats(0.0, 1.0), max_size=6).map(
        lambda steps: tuple(
            probability for probability in _running_product(steps) if probability > 1e-6
        )
    ),
    max_size=4,
)


def _running_product(steps):
    product = 1.0
    for step in steps:
        product *= step
        yield product


@given(
    outlooks=OUTLOOKS,
    slopes=st.lists(st.floats(0.0, 2.0), min_size=6, max_size=6),
    others=st.integers(0, 4),
    floor=st.integers(0, 6),
)
def test_width_has_the_best_rate_of_all(outlooks, slopes, others, floor) -> None:
    """No other width commits more tokens a millisecond, or none is worth leaving the floor."""
    costs = [1.0]
    for slope in slopes:
        costs.append(costs[-1] + slope)
    lanes = len(outlooks) + others

    width = paying_width(outlooks, costs, lanes, floor)

    def rate(candidate: int) -> float:
        tokens = max(lanes, 1) + sum(sum(outlook[:candidate]) for outlook in outlooks)
        return tokens / costs[candidate]

    widest = max([floor, *map(len, outlooks)])
    rates = [rate(candidate) for candidate in range(floor, widest + 1)]
    assert floor <= width <= widest
    assert rate(width) >= max(rates) - 1e-9 or max(rates) <= MARGIN * rates[0] + 1e-9
    assert width == floor or rate(width) >= MARGIN * rates[0] - 1e-9


def test_lanes_without_an_outlook_make_width_dearer() -> None:
    """One copying lane must not pad seven plain ones."""
    costs = (20.0, 30.0)

    assert 1 == paying_width([(0.9,)], costs, 1)
    assert 0 == paying_width([(0.9,)], costs, 8)
    assert 1 == paying_width([(0.9,)] * 8, costs, 8)


def test_width_is_bounded_by_what_lanes_have() -> None:
    assert 2 == paying_width([(1.0,), (1.0, 1.0)], (1.0,) * 9, 2)


def test_width_is_bounded_by_the_costs() -> None:
    assert 3 == paying_width([chain(0.9)], (1.0,) * 4, 1)
    assert 3 == paying_width([chain(0.9)], (1.0,) * 4, 1, floor=7)


def test_width_that_hardly_pays_is_left_alone() -> None:
    assert 0 == paying_width([(0.04, 0.0)], (1.0, 1.0, 1.0), 1)
    assert 1 == paying_width([(0.06, 0.0)], (1.0, 1.0, 1.0), 1)


def test_floor_is_kept_though_it_does_not_pay() -> None:
    assert 3 == paying_width([chain(0.01)], STEEP.by_width(1, 8), 1, floor=3)


def test_fresh_estimate_is_willing() -> None:
    estimate = AcceptanceEstimate.fresh(3)

    assert chain(INITIAL_ACCEPTANCE, 3) == pytest.approx(estimate.outlook(8))
    assert chain(INITIAL_ACCEPTANCE, 2) == pytest.approx(estimate.outlook(2))


def test_estimate_learns_from_judged_positions_only() -> None:
    before = AcceptanceEstimate((0.5, 0.5, 0.5, 0.5))

    after = before.observe(proposed=4, accepted=1)

    assert after.rates[0] > 0.5 > after.rates[1]
    assert (0.5, 0.5) == after.rates[2:]


def test_estimate_of_deeper_positions_follows_full_acceptance() -> None:
    """A width that was once too wide is tried again when narrower blocks are accepted whole."""
    estimate = AcceptanceEstimate((0.9, 0.9, 0.1, 0.1))
    for _ in range(60):
        estimate = estimate.observe(proposed=2, accepted=2)

    assert min(estimate.rates) > 0.9


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=40))
def test_estimate_stays_a_probability(rounds) -> None:
    estimate = AcceptanceEstimate.fresh(5)
    for proposed, accepted in rounds:
        estimate = estimate.observe(proposed, min(proposed, accepted))

    assert all(0.0 <= rate <= 1.0 for rate in estimate.rates)
    assert list(estimate.outlook(5)) == sorted(estimate.outlook(5), reverse=True)


def played(estimate, acceptance, rounds: int) -> tuple[AcceptanceEstimate, list[int]]:
    """Let a lane draft for rounds that accept everything, or nothing; return its widths."""
    costs, widths = MEASURED.by_width(1, 4), []
    for _ in range(rounds):
        width = paying_width([estimate.outlook(4)], costs, 1) or int(estimate.wants_probe)
        widths.append(width)
        estimate = estimate.observe(width, width * acceptance) if width else estimate.skip()
    return estimate, widths


def test_lane_that_is_always_rejected_stops_and_rarely_probes() -> None:
    _, widths = played(AcceptanceEstimate.fresh(4), 0, 400)

    assert 0 not in widths[:3]
    assert {0, 1} == set(widths[40:])
    assert sum(widths[40:]) <= 360 // 30


def test_lane_that_recovers_is_drafted_for_again() -> None:
    """Probes go on while they are accepted, so recovery takes few of them."""
    estimate, _ = played(AcceptanceEstimate.fresh(4), 0, 200)

    _, widths = played(estimate, 1, 80)

    assert [4] * 10 == widths[-10:]


def test_probes_that_never_pay_come_in_bursts() -> None:
    """A lane whose probes are accepted and yet do not pay does not probe for ever."""
    estimate, probes = AcceptanceEstimate((0.0,)), []
    for _ in range(200):
        probes.append(estimate.wants_probe)
        estimate = estimate.observe(1, 1) if estimate.wants_probe else estimate.skip()

    assert ([False] * 32 + [True] * 8) * 5 == probes
