"""What the contract suite cannot see of the ONNX target."""

from __future__ import annotations

import itertools

import pytest

from engines.onnx.decoder import Decoder
from engines.onnx.target import OnnxTarget
from engines.sampling.row_sampler import RowSampler
from service.errors import EngineError
from service.speculation.completion import CompletionCancellation
from service.speculation.contract import ComponentTimings, History, PrefillInput, VerificationInput

GREEDY = RowSampler()
WARM = RowSampler(temperature=1.0)
PROMPT = (5, 6, 7)


@pytest.fixture
def target(tiny_bundle) -> OnnxTarget:
    decoder = Decoder(tiny_bundle, max_slots=2, max_context=64)
    ticks = itertools.count()
    return OnnxTarget(decoder, clock=lambda: float(next(ticks)))


def verification(target: OnnxTarget, slot: int, tokens, sampler=GREEDY) -> VerificationInput:
    return VerificationInput(slot, target.checkpoint(slot), tokens, History(PROMPT, ()), sampler)


def prefill(target: OnnxTarget, slot: int, sampler=GREEDY, *, is_last: bool = True):
    chunk = PrefillInput(slot, 0, PROMPT, is_last, History(PROMPT, ()), sampler)
    return target.prefill([chunk]).output


def test_limits_are_those_of_the_decoder(target) -> None:
    limits = target.limits

    assert (265, 64, 2, 2, 128) == (
        limits.vocabulary_size,
        limits.max_context,
        limits.max_slots,
        limits.max_pass_lanes,
        limits.max_pass_rows,
    )
    assert {CompletionCancellation.QUARANTINE_UNTIL_COMPLETE} == limits.cancellations
    assert not limits.can_overlap_drafting


def test_timings_are_the_seconds_of_the_decoder(target) -> None:
    output = prefill(target, target.open())

    assert ComponentTimings(target_verification=1.0) == target.take_timings(output)


def test_rows_of_two_passes_stay_apart_until_released(target) -> None:
    """A pass keeps its own logits while another is computed."""
    first, second = target.open(), target.open()
    prefill(target, first).release()
    prefill(target, second).release()
    one = target.submit([verification(target, first, (1, 2), WARM)]).output
    expected = [one.rows(0).distribution(row, WARM).probability(9) for row in range(2)]

    target.submit([verification(target, second, (3, 4), WARM)])

    assert expected == [one.rows(0).distribution(row, WARM).probability(9) for row in range(2)]


def test_greedy_and_sampled_lanes_of_one_pass_agree_on_the_argmax(target) -> None:
    slots = target.open(), target.open()
    for slot in slots:
        prefill(target, slot).release()
    output = target.submit(
        [
            verification(target, slot, (1, 2), sampler)
            for slot, sampler in zip(slots, (GREEDY, WARM), strict=True)
        ]
    ).output

    for row in range(2):
        greedy = output.rows(0).distribution(row, GREEDY).sample(None)
        assert greedy == output.rows(1).distribution(row, WARM).sample(None)


def test_rows_taken_before_the_release_are_refused_after_it(target) -> None:
    output = prefill(target, target.open())
    rows = output.rows(0)
    output.release()
    output.release()

    with pytest.raises(EngineError, match="released"):
        rows.distribution(0, GREEDY)


def test_chunk_that_is_not_the_last_has_no_row(target) -> None:
    output = prefill(target, target.open(), is_last=False)

    with pytest.raises(EngineError):
        output.rows(0).distribution(0, GREEDY)


def test_pass_from_a_foreign_boundary_is_refused(target) -> None:
    """An earlier boundary would silently truncate the lane."""
    slot = target.open()
    prefill(target, slot).release()
    stale = VerificationInput(slot, 2, (1,), History(PROMPT, ()), GREEDY)

    with pytest.raises(EngineError, match="stands at 3, not at 2"):
        target.submit([stale])

    assert 3 == target.checkpoint(slot)


def test_buffers_of_refused_passes_are_not_lost(target, monkeypatch) -> None:
    """One buffer serves passes in turn, failed ones included."""
    slot = target.open()
    taken = []
    take = target._pool.take
    monkeypatch.setattr(target._pool, "take", lambda: taken.append(take()) or taken[-1])
    output = prefill(target, slot)
    output.release()
    for _ in range(3):
        with pytest.raises(EngineError):
            target.submit([verification(target, slot, tuple(range(62)))])
    target.submit([verification(target, slot, (1,))]).output.release()

    assert 1 == len({id(buffer) for buffer in taken})
