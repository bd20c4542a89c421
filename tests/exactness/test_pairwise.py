"""A selection of combinations holds every pair of values."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from exactness.pairwise import every, pairwise

axes = st.lists(st.integers(1, 4), min_size=2, max_size=4).map(
    lambda sizes: {f"axis{at}": range(size) for at, size in enumerate(sizes)}
)


def pairs(chosen):
    return {pair for one in chosen for pair in combinations(sorted(one.items()), 2)}


@given(axes)
def test_every_pair_of_values_is_selected(axes) -> None:
    assert pairs(every(axes)) == pairs(pairwise(axes))


@given(axes)
def test_selection_is_a_part_of_all_and_always_the_same(axes) -> None:
    chosen = pairwise(axes)

    assert all(one in every(axes) for one in chosen)
    assert chosen == pairwise(axes)


def test_selection_is_small() -> None:
    axes = {name: range(8) for name in "abcd"}

    assert len(pairwise(axes)) < 100 < len(every(axes))
