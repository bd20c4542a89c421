"""The cost curve: what was measured, and what lies between and beyond."""

import pytest

from service.speculation.cost import CostCurve

MEASURED = {
    (1, 1): 10.0,
    (1, 2): 12.0,
    (1, 5): 18.0,
    (4, 1): 16.0,
    (4, 2): 20.0,
    (4, 5): 38.0,
}
CURVE = CostCurve.from_points(MEASURED)


@pytest.mark.parametrize(("shape", "cost"), MEASURED.items())
def test_measured_points_are_kept(shape, cost) -> None:
    assert cost == pytest.approx(CURVE.milliseconds(*shape))


@pytest.mark.parametrize(
    ("lanes", "rows", "cost"),
    [
        (1, 3, 14.0),
        (2, 1, 12.0),
        (3, 5, 18.0 + 20.0 * 2 / 3),
        (1, 9, 26.0),
        (7, 1, 22.0),
    ],
)
def test_curve_is_linear_between_and_beyond(lanes, rows, cost) -> None:
    """Beyond the last measurement it goes on as between the last two."""
    assert cost == pytest.approx(CURVE.milliseconds(lanes, rows))


def test_curve_is_flat_before_the_first_measurement() -> None:
    curve = CostCurve.from_points({(2, 2): 5.0, (2, 3): 6.0})

    assert 5.0 == curve.milliseconds(1, 1)


def test_single_measurement_holds_everywhere() -> None:
    curve = CostCurve.from_points({(1, 1): 3.0})

    assert 3.0 == curve.milliseconds(8, 16)


def test_noise_never_makes_more_rows_cheaper() -> None:
    curve = CostCurve.from_points({(1, 1): 10.0, (1, 2): 9.0, (1, 3): 11.0, (1, 5): 10.5})

    assert [10.0, 10.0, 11.0, 11.0, 11.0] == [curve.milliseconds(1, rows) for rows in range(1, 6)]


def test_cost_of_a_round_by_width_has_the_leading_row_and_the_draft() -> None:
    assert (10.0, 12.5, 15.0) == pytest.approx(CURVE.by_width(1, 2, 0.5))


def test_row_cost_is_a_fraction_of_a_plain_pass() -> None:
    assert 0.2 == pytest.approx(CURVE.row_cost(1))
    assert 22.0 / 64.0 == pytest.approx(CURVE.row_cost(4))


@pytest.mark.parametrize("points", [{}, {(1, 1): 0.0}, {(0, 1): 1.0}, {(1, 0): 1.0}])
def test_curve_without_positive_measurements_is_refused(points) -> None:
    with pytest.raises(ValueError, match="cost curve"):
        CostCurve.from_points(points)
