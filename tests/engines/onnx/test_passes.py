"""Grouping lanes into engine calls."""

from hypothesis import given
from hypothesis import strategies as st

from engines.onnx.passes import CallLimits, PlacedLane, plan_calls

LIMITS = CallLimits(max_rows=128, padding_columns=12288)


def lanes_of(*rows_by_row: tuple[int, int]) -> list[PlacedLane]:
    return [PlacedLane(index, row, 0, rows) for index, (row, rows) in enumerate(rows_by_row)]


def rows_of_calls(lanes: list[PlacedLane], capacity: int) -> list[list[int]]:
    return [[lane.row for lane in call.lanes] for call in plan_calls(lanes, capacity, LIMITS)]


def test_neighbours_of_equal_width_share_a_call() -> None:
    assert [[0, 1, 2, 3]] == rows_of_calls(lanes_of((2, 5), (0, 5), (3, 5), (1, 5)), 1024)


def test_ragged_lanes_share_a_call_while_padding_is_cheap() -> None:
    """56 places of padding over 192 columns cost less than a second call."""
    ragged = lanes_of((0, 9), *((row, 1) for row in range(1, 8)))

    assert [list(range(8))] == rows_of_calls(ragged, 192)
    assert 1 < len(rows_of_calls(ragged, 1024))


def test_idle_rows_between_lanes_are_padding() -> None:
    apart = lanes_of((0, 1), (7, 1))

    assert [[0, 7]] == rows_of_calls(apart, 1024)
    assert [[0], [7]] == rows_of_calls(apart, 4096)


def test_long_chunk_does_not_pad_short_lanes() -> None:
    assert [[0], [1, 2]] == rows_of_calls(lanes_of((0, 100), (1, 1), (2, 1)), 512)


def test_calls_never_exceed_their_rows() -> None:
    assert [[0], [1]] == rows_of_calls(lanes_of((0, 100), (1, 100)), 64)


@given(
    st.lists(st.integers(1, 128), min_size=1, max_size=16),
    st.permutations(range(16)),
    st.sampled_from([64, 512, 4096]),
)
def test_plan_covers_every_lane_once_and_keeps_its_bounds(widths, places, capacity) -> None:
    lanes = lanes_of(*zip(places, widths, strict=False))

    calls = plan_calls(lanes, capacity, LIMITS)

    covered = [lane for call in calls for lane in call.lanes]
    assert sorted(lanes, key=lambda lane: lane.row) == covered
    for call in calls:
        assert call.rows <= LIMITS.max_rows
        assert len(call.lanes) == 1 or call.padding * capacity <= LIMITS.padding_columns
        assert call.span * call.widest == call.rows + call.padding
