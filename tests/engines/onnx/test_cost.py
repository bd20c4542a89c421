"""Measuring passes: what is timed, and when it is remembered."""

import itertools
import json
import shutil

import pytest

from engines.bundle.bundle import Bundle
from engines.bundle.manifest import COST_FILE
from engines.onnx import cost
from engines.onnx.cost import (
    best_of,
    cost_curve,
    measure_points,
    measurement_key,
    was_disturbed,
)
from engines.onnx.decoder import Decoder


@pytest.fixture
def bundle(tiny_bundle, tmp_path) -> Bundle:
    """A bundle without memory of measurements."""
    path = tmp_path / "tiny"
    shutil.copytree(tiny_bundle.path, path)
    (path / COST_FILE).unlink(missing_ok=True)
    return Bundle(path, tiny_bundle.manifest)


@pytest.fixture
def decoder(bundle) -> Decoder:
    return Decoder(bundle, max_slots=4, max_context=128, threads=2)


def test_points_are_the_best_time_of_each_pass(decoder) -> None:
    """A clock that slows down makes the first round the best one."""
    instants = itertools.accumulate(itertools.count())

    points = measure_points(decoder, (1, 4), clock=lambda: float(next(instants)))

    assert [(lanes, rows) for lanes in (1, 4) for rows in cost.ROWS] == list(points)
    assert [1e3 * (1 + 2 * place) for place in range(10)] == list(points.values())


def test_measuring_leaves_every_slot_free(decoder) -> None:
    measure_points(decoder, (1, 4))

    assert [0, 0, 0, 0] == [decoder.length(decoder.open()) for _ in range(4)]


def test_curve_is_measured_once_and_remembered(bundle, decoder) -> None:
    measured = cost_curve(bundle, decoder)
    (known,) = json.loads((bundle.path / COST_FILE).read_text()).values()
    remembered = dict.fromkeys(known, 1e-06)
    (bundle.path / COST_FILE).write_text(json.dumps({measurement_key(bundle, 2): remembered}))

    assert 0 < measured.milliseconds(1, 1)
    assert 1e-6 == cost_curve(bundle, decoder).milliseconds(1, 1)
    assert {f"{lanes}x{rows}" for lanes in (1, 2, 4) for rows in cost.ROWS} == set(known)


def test_curve_of_other_threads_is_measured_anew(bundle, decoder) -> None:
    cost_curve(bundle, decoder)
    cost_curve(bundle, Decoder(bundle, max_slots=4, max_context=128, threads=1))

    assert 2 == len(json.loads((bundle.path / COST_FILE).read_text()))
    assert measurement_key(bundle, 1) != measurement_key(bundle, 2)


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1'])
def test_curve_survives_a_broken_memory(bundle, decoder, text) -> None:
    (bundle.path / COST_FILE).write_text(text)

    assert 0 < cost_curve(bundle, decoder).milliseconds(1, 1)


@pytest.mark.parametrize(
    "damage",
    [
        [],
        "text",
        {"1x1": "fast"},
        {"1x1": None},
        {"one": 1.0},
        {"1x1": 0},
        {"1x1": -1.0},
        {"0x1": 1.0},
        {"1x1": float("nan")},
        {"1x1": float("inf")},
        {"1x1": 10**400},
    ],
)
def test_curve_of_damaged_values_is_measured_anew(bundle, decoder, damage) -> None:
    cost_curve(bundle, decoder)
    ((key, known),) = json.loads((bundle.path / COST_FILE).read_text()).items()
    damaged = known | damage if isinstance(damage, dict) else damage
    (bundle.path / COST_FILE).write_text(json.dumps({key: damaged}))

    curve = cost_curve(bundle, decoder)

    written = json.loads((bundle.path / COST_FILE).read_text())[key]
    assert 0 < curve.milliseconds(1, 1) < 1e5
    assert set(known) == set(written)


def test_curve_is_measured_where_nothing_can_be_written(bundle, decoder) -> None:
    (bundle.path / COST_FILE).mkdir()

    assert 0 < cost_curve(bundle, decoder).milliseconds(4, 2)


def test_curve_of_a_disturbed_measurement_is_measured_again(bundle, decoder) -> None:
    """A first start on a busy machine must not decide every width from then on."""
    cost_curve(bundle, decoder)
    ((key, known),) = json.loads((bundle.path / COST_FILE).read_text()).items()
    inflated = dict.fromkeys(known, 1000000.0)
    (bundle.path / COST_FILE).write_text(json.dumps({key: inflated}))

    assert 1e5 > cost_curve(bundle, decoder).milliseconds(4, 9)


def test_glance_tells_only_of_clearly_cheaper_passes() -> None:
    known = {(1, 1): 10.0, (1, 5): 16.0}

    assert was_disturbed(known, {(1, 1): 7.9})
    assert not was_disturbed(known, {(1, 1): 8.1, (1, 5): 30.0})
    assert {(1, 1): 9.0, (1, 5): 16.0} == best_of(known, {(1, 1): 9.0, (1, 5): 20.0})
