import json

import pytest

from benchmarks.results import Better, Figure, Result, ResultFile


@pytest.mark.parametrize(
    ("value", "goal", "better", "reached"),
    [
        (0.9, 0.9, Better.HIGHER, True),
        (0.89, 0.9, Better.HIGHER, False),
        (2.0, 2.0, Better.LOWER, True),
        (2.1, 2.0, Better.LOWER, False),
        (5.0, None, Better.HIGHER, None),
    ],
)
def test_figure_reaches_its_goal_from_its_side(value, goal, better, reached) -> None:
    assert reached is Figure("speed", value, goal=goal, better=better).reached


def test_result_file_keeps_what_earlier_runs_measured(tmp_path) -> None:
    """Measuring one thing again leaves the rest of the file alone."""
    path = tmp_path / "results" / "latest.json"
    ResultFile(path).keep("memory", Result((Figure("growth", 1.0),)).to_json())
    ResultFile(path).keep("speed", Result((Figure("speed", 1.0),)).to_json())
    ResultFile(path).keep("speed", Result((Figure("speed", 2.0),), identical=True).to_json())

    kept = json.loads(path.read_text())["measurements"]

    assert ["memory", "speed"] == list(kept)
    assert (2.0, True) == (kept["speed"]["figures"][0]["value"], kept["speed"]["identical"])
    assert Figure("growth", 1.0) == ResultFile(path).results()["memory"].figures[0]


def test_result_is_what_its_json_describes() -> None:
    result = Result(
        (Figure("growth", 1.0, "%", goal=2.0, better=Better.LOWER),), True, {"seen": [1, 2]}
    )

    assert result == Result.from_json(json.loads(json.dumps(result.to_json())))
