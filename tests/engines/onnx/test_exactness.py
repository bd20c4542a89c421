"""Bit-equality: a row's logits depend on its lane's tokens and on nothing else.

Every test runs on the tiny model; those marked `model` repeat it on the default
one, where kernels have the sizes that matter.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest

from engines.onnx.decoder import MAX_ROWS, Decoder
from engines.onnx.passes import LaneInput

LENGTH = 220
WIDTHS = (2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 33, 64, 65, 127, 128)


@dataclass(frozen=True)
class Truth:
    """One sequence, and its logits computed one row at a time by a lane alone."""

    decoder: Decoder
    tokens: tuple[int, ...]
    logits: np.ndarray

    def lane(self, slot: int, start: int, rows: int) -> LaneInput:
        return LaneInput(slot, start, self.tokens[start : start + rows], rows)

    def holds(self, lane: LaneInput, rows: np.ndarray) -> bool:
        return bool((self.logits[lane.start : lane.start + lane.wanted] == rows).all())


def _truth(bundle) -> Truth:
    decoder = Decoder(bundle, max_slots=9, max_context=1024)
    generator = np.random.default_rng(11)
    tokens = tuple(int(t) for t in generator.integers(0, decoder.vocabulary_size, LENGTH))
    slot = decoder.open()
    rows = [
        decoder.forward([LaneInput(slot, i, (t,), 1)])[0][0].copy() for i, t in enumerate(tokens)
    ]
    decoder.close(slot)
    return Truth(decoder, tokens, np.array(rows))


@pytest.fixture(
    scope="module", params=["tiny_bundle", pytest.param("default_bundle", marks=pytest.mark.model)]
)
def truth(request: pytest.FixtureRequest) -> Truth:
    return _truth(request.getfixturevalue(request.param))


@pytest.fixture
def slots(truth):
    """Nine open slots."""
    opened = [truth.decoder.open() for _ in range(9)]
    yield opened
    for slot in opened:
        truth.decoder.close(slot)


def test_rows_of_any_pass_equal_single_rows(truth, slots) -> None:
    """Two to 128 rows, across capacities and at the end."""
    slot = slots[0]
    for rows in WIDTHS:
        for start in (LENGTH // 2 - 37, LENGTH - rows):
            _fill(truth, slot, start)
            lane = truth.lane(slot, start, rows)

            (logits,) = truth.decoder.forward([lane])

            assert truth.holds(lane, logits), (rows, start)


@pytest.mark.parametrize("lanes", [2, 3, 4, 8])
def test_ragged_batches_equal_single_rows(truth, slots, lanes) -> None:
    """Lanes of different lengths and widths, joining and skipping passes, with rollbacks."""
    choices = random.Random(lanes)
    for _ in range(25):
        given = []
        for slot in choices.sample(slots[:lanes], choices.randint(1, lanes)):
            length = truth.decoder.length(slot)
            start = max(0, length - choices.randint(0, 3))
            start = start if start + 9 <= LENGTH else 0
            given.append(truth.lane(slot, start, choices.randint(1, 9)))

        logits = truth.decoder.forward(given)

        assert all(truth.holds(lane, rows) for lane, rows in zip(given, logits, strict=True))


def test_lanes_of_very_different_widths_equal_single_rows(truth, slots) -> None:
    """A prompt chunk beside plain lanes; the decoder may part them into several calls."""
    given = [
        truth.lane(slot, 0, rows) for slot, rows in zip(slots, (1, 96, 2, 128, 1), strict=False)
    ]

    logits = truth.decoder.forward(given)

    assert all(truth.holds(lane, rows) for lane, rows in zip(given, logits, strict=True))


@pytest.mark.parametrize("chunk", [7, 64, 100, MAX_ROWS])
def test_prefill_in_chunks_equals_single_rows(truth, slots, chunk) -> None:
    for start in range(0, LENGTH, chunk):
        rows = min(chunk, LENGTH - start)
        lane = truth.lane(slots[0], start, rows)

        (logits,) = truth.decoder.forward([lane])

        assert truth.holds(lane, logits), start


@pytest.mark.parametrize("neighbour", [65, 200, 520])
def test_capacity_does_not_show_in_the_logits(truth, slots, neighbour) -> None:
    """A longer neighbour widens everybody's attention, by columns of weight zero."""
    _fill(truth, slots[1], neighbour)
    for start, rows in ((0, 5), (5, 1), (6, 58), (64, 64), (128, 90), (218, 1)):
        lane = truth.lane(slots[0], start, rows)

        (logits,) = truth.decoder.forward([lane])

        assert truth.holds(lane, logits), start


def test_lane_that_moved_rows_goes_on_exactly(truth) -> None:
    """Closing a slot moves the last lane into its row."""
    first, second, third = (truth.decoder.open() for _ in range(3))
    for slot, length in ((first, 10), (second, 100), (third, 150)):
        _fill(truth, slot, length)

    truth.decoder.close(first)
    given = [truth.lane(third, 150, 4), truth.lane(second, 100, 1)]
    logits = truth.decoder.forward(given)

    assert all(truth.holds(lane, rows) for lane, rows in zip(given, logits, strict=True))
    truth.decoder.close(second)
    lane = truth.lane(third, 154, 3)
    assert truth.holds(lane, truth.decoder.forward([lane])[0])
    truth.decoder.close(third)


def test_rollback_leaves_no_trace_of_rejected_tokens(truth, slots) -> None:
    """Foreign tokens are written behind a lane, and behind it again, then forgotten."""
    slot = slots[0]
    _fill(truth, slot, 60)
    for start in (60, 61, 70, 120):
        _fill(truth, slot, start)
        foreign = tuple(reversed(truth.tokens[: 1 + start % 11]))
        truth.decoder.forward([LaneInput(slot, start, foreign, 0)])
        truth.decoder.truncate(slot, start)
        lane = truth.lane(slot, start, 2)

        (logits,) = truth.decoder.forward([lane])

        assert truth.holds(lane, logits), start


def test_idle_lanes_in_the_span_keep_their_content(truth, slots) -> None:
    """A pass over outer rows computes over the rows between, and writes only behind them."""
    for slot in slots[:5]:
        _fill(truth, slot, 70)
    truth.decoder.forward([truth.lane(slots[0], 70, 9), truth.lane(slots[4], 70, 9)])

    given = [truth.lane(slot, 70, 2) for slot in slots[1:4]]
    logits = truth.decoder.forward(given)

    assert all(truth.holds(lane, rows) for lane, rows in zip(given, logits, strict=True))


def _fill(truth: Truth, slot: int, length: int) -> None:
    """Bring a lane to a length, reusing what it holds; tokens repeat past the sequence."""
    truth.decoder.truncate(slot, min(length, truth.decoder.length(slot)))
    while (start := truth.decoder.length(slot)) < length:
        rows = min(MAX_ROWS, length - start)
        tokens = tuple(truth.tokens[(start + i) % LENGTH] for i in range(rows))
        truth.decoder.forward([LaneInput(slot, start, tokens, 0)])
