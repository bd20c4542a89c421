"""What the contract suite cannot see of the ONNX target."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest

from engines.onnx.decoder import Decoder
from engines.onnx.target import OnnxTarget
from engines.sampling.one_hot import OneHot
from engines.sampling.row_sampler import RowSampler
from service.errors import EngineError, NothingAllowed
from service.speculation.completion import CompletionCancellation
from service.speculation.contract import (
    ComponentTimings,
    History,
    PrefillInput,
    SamplingInput,
    VerificationInput,
)
from tests.contract.constraints import Outputs, Stripes
from tests.engines.sampling.watched import Watched
from tests.neutral import SAMPLED

GREEDY_CONFIG = replace(SAMPLED, do_sample=False, temperature=0.0)
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


def test_masks_of_a_pass_are_asked_for_before_it_is_computed(target, monkeypatch) -> None:
    """Those of all rows that can be reached, so that they are computed beside the engine."""
    watched = Watched(Outputs(((1, 2, 3), (1, 4)), 9))
    sampler = target.sampler(SamplingInput(GREEDY_CONFIG, PROMPT, 265, constraint=watched))
    forward, known = target.decoder.forward, []

    def computed(*arguments):
        known.append(list(watched.log.prefetches))
        return forward(*arguments)

    monkeypatch.setattr(target.decoder, "forward", computed)
    slot = target.open()
    prefill(target, slot, sampler).release()
    sampler = sampler.advance(OneHot(1), 1)
    lane = VerificationInput(slot, 3, (1, 2, 7), History(PROMPT, (1,)), sampler)
    target.submit([lane])

    assert [[()], [(), (1,), (1, 2)]] == known


def test_chunk_without_a_row_asks_for_no_mask(target) -> None:
    watched = Watched(Stripes())
    sampler = target.sampler(SamplingInput(GREEDY_CONFIG, PROMPT, 265, constraint=watched))

    prefill(target, target.open(), sampler, is_last=False)

    assert [] == watched.log.prefetches


@pytest.mark.parametrize("config", [GREEDY_CONFIG, SAMPLED])
def test_padded_ids_of_the_graph_are_never_chosen(target, config) -> None:
    """B10: the graph may have more columns than the tokenizer has tokens."""
    slot = target.open()
    whole = prefill(target, slot, WARM).rows(0)
    best = whole.distribution(0, WARM).sample(None)
    sampler = target.sampler(SamplingInput(config, PROMPT, best))
    target.restore(slot, 0)

    rows = prefill(target, slot, sampler).rows(0)
    distribution = rows.distribution(0, sampler)

    assert distribution.sample(None) < best
    assert 0.0 == distribution.probability(best)
    total = sum(math.exp(rows.raw_logprob(0, token, 0).logprob) for token in range(best))
    assert 1.0 == pytest.approx(total, abs=1e-5)


def test_row_with_nothing_left_fails_its_lane_alone(target) -> None:
    slots = target.open(), target.open()
    for slot in slots:
        prefill(target, slot).release()
    dead = target.sampler(
        SamplingInput(GREEDY_CONFIG, PROMPT, 265, constraint=Stripes(is_dead=True))
    )
    output = target.submit(
        [
            verification(target, slot, (1, 2), sampler)
            for slot, sampler in zip(slots, (dead, GREEDY), strict=True)
        ]
    ).output

    with pytest.raises(NothingAllowed, match=r"chat\.tools"):
        output.rows(0).distribution(0, dead)
    assert output.rows(1).distribution(0, GREEDY).sample(None) in range(265)
