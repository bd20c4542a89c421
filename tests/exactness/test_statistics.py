"""The measures of distance from a law: known values, and what they must notice."""

import math
import random
from collections import Counter

import pytest

from exactness.statistics import (
    SIGNIFICANCE,
    chi_square_p,
    total_variation,
    total_variation_bound,
    upper_gamma,
)

LAW = {"a": 0.5, "b": 0.3, "c": 0.2}


@pytest.mark.parametrize("x", [0.01, 0.5, 1.0, 3.0, 12.0, 40.0])
def test_gamma_of_one_half_is_the_complementary_error_function(x) -> None:
    assert math.erfc(math.sqrt(x)) == pytest.approx(upper_gamma(0.5, x), rel=1e-9)


@pytest.mark.parametrize("shape", [1, 2, 5, 13])
@pytest.mark.parametrize("x", [0.1, 2.0, 9.0, 39.0])
def test_gamma_of_whole_shapes_is_a_poisson_sum(shape, x) -> None:
    expected = math.exp(-x) * sum(x**k / math.factorial(k) for k in range(shape))

    assert expected == pytest.approx(upper_gamma(shape, x), rel=1e-9)


def test_counts_as_expected_fit_perfectly() -> None:
    assert chi_square_p({"a": 50, "b": 30, "c": 20}, LAW) == 1.0


def test_table_value_of_chi_square_has_its_probability() -> None:
    """18.42 is exceeded with two degrees of freedom once in ten thousand."""
    third = {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}
    away = math.sqrt(18.42 * 300 / 3 / 2)
    counts = {"a": 100 + away, "b": 100 - away, "c": 100}

    assert chi_square_p(counts, third) == pytest.approx(1e-4, rel=0.01)


def test_impossible_outcome_refutes_a_law() -> None:
    assert chi_square_p({"a": 999, "d": 1}, LAW) == 0.0


def test_rare_cells_count_as_one() -> None:
    law = {"a": 0.98} | {str(number): 0.0002 for number in range(100)}

    assert chi_square_p({"a": 980} | {str(n): 1 for n in range(20)}, law) > 0.5
    assert chi_square_p({"a": 900} | {str(n): 1 for n in range(100)}, law) < SIGNIFICANCE


def test_one_rare_outcome_refutes_nothing() -> None:
    """It is joined to the cell before it: by itself it would count for thirty."""
    law = {"a": 0.6, "b": 0.3999, "c": 0.0001}

    assert chi_square_p({"a": 180, "b": 119, "c": 1}, law) > 0.5


def test_samples_of_a_law_keep_its_bounds_and_those_of_another_break_them() -> None:
    draws = random.Random(1)
    for _ in range(50):
        counts = Counter(draws.choices("abc", (0.5, 0.3, 0.2), k=2000))
        frequencies = {cell: count / 2000 for cell, count in counts.items()}
        other = {"a": 0.4, "b": 0.3, "c": 0.3}

        assert chi_square_p(counts, LAW) > SIGNIFICANCE
        assert chi_square_p(counts, other) < SIGNIFICANCE
        assert total_variation(frequencies, LAW) < total_variation_bound(LAW, 2000)
        assert total_variation(frequencies, other) > total_variation_bound(other, 2000)
