"""What a pass costs by lanes and rows, measured anew as the server measures it at its start."""

from __future__ import annotations

from benchmarks.bare import decoder_of, default_model
from benchmarks.bench import Bench
from benchmarks.results import Figure, Result
from engines.onnx.cost import LANES, ROWS, measure_points
from service.speculation.cost import CostCurve


async def measure_cost_curve(bench: Bench) -> Result:
    """Time passes of one to eight lanes with one to nine rows each."""
    model = default_model(max_slots=max(LANES))
    bench.tell("passes by lanes and rows", 0, 1)
    points = measure_points(decoder_of(model), LANES)
    curve = CostCurve.from_points(points)
    return Result(
        figures=(
            Figure("pass of one row", points[1, 1], "ms"),
            Figure("  of five rows", points[1, 5], "ms"),
            Figure("  of eight lanes of one row", points[8, 1], "ms"),
            Figure("  one more row, share of a pass", curve.row_cost(1)),
        ),
        details={
            "milliseconds": {f"{n} lanes": {r: points[n, r] for r in ROWS} for n in LANES},
            "row_cost": {f"{n} lanes": curve.row_cost(n) for n in LANES},
        },
    )
