"""Measure what a pass costs on this machine, once for each machine, bundle and setting."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path

import onnxruntime

from engines.bundle.bundle import Bundle
from engines.bundle.manifest import COST_FILE
from engines.onnx.decoder import Decoder
from engines.onnx.passes import LaneInput
from service.speculation.cost import CostCurve

LANES = (1, 2, 4, 8)
ROWS = (1, 2, 3, 5, 9)
_CONTEXT = 64
_REPEATS = 3
_GLANCE = (1, 5)
_CLEARLY_CHEAPER = 0.8

Points = dict[tuple[int, int], float]


def cost_curve(bundle: Bundle, decoder: Decoder) -> CostCurve:
    """Give the decoder's cost curve: remembered beside the bundle, or measured now (2 s).

    The decoder must have no lane open. Measurements are remembered by processor,
    threads, ONNX Runtime version and graph, so a bundle that moves is measured
    anew; so is one that was measured while the machine was busy, which a glance
    at one lane's passes (0.1 s) tells.
    """
    key = measurement_key(bundle, decoder.threads)
    lanes = tuple(count for count in LANES if count <= decoder.max_slots)
    path = bundle.path / COST_FILE
    known = _points(_read(path).get(key))
    complete = all((count, rows) in known for count in lanes for rows in ROWS)
    if not complete or was_disturbed(known, measure_points(decoder, (1,), _GLANCE)):
        known = known | best_of(known, measure_points(decoder, lanes))
        written = {f"{count}x{rows}": cost for (count, rows), cost in known.items()}
        _write(path, {**_read(path), key: written})
    return CostCurve.from_points(known)


def was_disturbed(known: Points, glance: Points) -> bool:
    """Whether passes are clearly cheaper now than when they were measured."""
    return any(cost < _CLEARLY_CHEAPER * known[point] for point, cost in glance.items())


def best_of(known: Points, measured: Points) -> Points:
    """Return the lower cost of each measured point: disturbances only ever add."""
    return {point: min(cost, known.get(point, cost)) for point, cost in measured.items()}


def measure_points(
    decoder: Decoder,
    lanes: tuple[int, ...],
    widths: tuple[int, ...] = ROWS,
    clock: Callable[[], float] = time.perf_counter,
) -> Points:
    """Time passes of each number of lanes and rows; milliseconds, the best of three rounds.

    Rounds go over all points in turn, so that a disturbance does not fall on
    one point alone.
    """
    context = min(_CONTEXT, decoder.max_context - max(ROWS))
    slots = [decoder.open() for _ in range(max(lanes))]
    try:
        decoder.forward([_input(slot, 0, context, wanted=0) for slot in slots])
        points: Points = {}
        for _ in range(_REPEATS):
            for count in lanes:
                for rows in widths:
                    started = clock()
                    decoder.forward([_input(slot, context, rows) for slot in slots[:count]])
                    spent = 1e3 * (clock() - started)
                    points[count, rows] = min(spent, points.get((count, rows), spent))
        return points
    finally:
        for slot in slots:
            decoder.close(slot)


def measurement_key(bundle: Bundle, threads: int) -> str:
    """Name everything that a measurement depends on."""
    graph = bundle.manifest.files[bundle.manifest.graph.file].sha256
    facts = (_processor(), os.cpu_count(), threads, onnxruntime.__version__, graph)
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


def _input(slot: int, start: int, rows: int, wanted: int | None = None) -> LaneInput:
    tokens = tuple(range(rows))
    return LaneInput(slot, start, tokens, rows if wanted is None else wanted)


def _points(known: object) -> Points:
    """Read remembered measurements; one damaged value spoils them all."""
    if not isinstance(known, dict):
        return {}
    try:
        points = {_point(name): float(cost) for name, cost in known.items()}
    except (ValueError, TypeError, OverflowError):
        return {}
    sound = all(min(point) > 0 and 0 < cost < math.inf for point, cost in points.items())
    return points if sound else {}


def _point(name: str) -> tuple[int, int]:
    lanes, _, rows = name.partition("x")
    return int(lanes), int(rows)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line for line in lines if line.startswith(("model name", "Hardware"))]
    return names[0] if names else platform.processor()


def _read(path: Path) -> dict[str, object]:
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return known if isinstance(known, dict) else {}


def _write(path: Path, known: dict[str, object]) -> None:
    """Remember measurements; a bundle that cannot be written is measured at each start."""
    partial = path.with_name(f"{path.name}.partial")
    try:
        partial.write_text(json.dumps(known), encoding="utf-8")
        partial.replace(path)
    except OSError:
        return
