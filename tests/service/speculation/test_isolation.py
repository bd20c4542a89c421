"""A fault at every boundary of every action, for one lane of three: the others never notice."""

import gc
import tracemalloc
from dataclasses import replace

import pytest

from service import errors
from service.speculation.lifecycle import RequestStatus
from service.speculation.observer import LifecycleStage
from service.speculation.options import SchedulerOptions
from service.speculation.table import Turn
from tests.service.speculation.doubles import (
    Bench,
    RecordingObserver,
    RecordingPublisher,
    RecordingText,
    ScriptedTarget,
)

TOGETHER = SchedulerOptions().with_lookahead(enabled=False)
AHEAD = SchedulerOptions()
VICTIM = 1


def expected(**target):
    """Return what three undisturbed lanes publish."""
    bench = Bench(ScriptedTarget(**target), TOGETHER)
    lanes = [bench.join(max_tokens=6) for _ in range(3)]
    bench.run()
    return [lane.request.publisher.tokens for lane in lanes]


def three_lanes(bench, **victim):
    return [bench.join(max_tokens=6, **(victim if i == VICTIM else {})) for i in range(3)]


def assert_only_the_victim_failed(bench, lanes):
    assert [lane.status for lane in lanes] == [
        RequestStatus.COMPLETED,
        RequestStatus.FAILED,
        RequestStatus.COMPLETED,
    ]
    published = [lane.request.publisher.tokens for lane in lanes]
    undisturbed = expected(full_acceptance=bench.target.full_acceptance)
    assert published[0] == undisturbed[0]
    assert published[2] == undisturbed[2]
    length = len(published[VICTIM])
    assert published[VICTIM] == undisturbed[VICTIM][:length], "what was delivered stays valid"
    assert bench.table.is_finished


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize(
    "stage",
    [
        LifecycleStage.INPUT,
        LifecycleStage.EXECUTION,
        LifecycleStage.COMPLETION,
        LifecycleStage.OBSERVATION,
        LifecycleStage.CACHE_PERSISTENCE,
        LifecycleStage.PUBLICATION,
    ],
)
def test_observer_fault_at_any_boundary_ends_its_lane_alone(stage, nth):
    if stage is LifecycleStage.INPUT and nth == 2:
        nth = 1
    bench = Bench(ScriptedTarget(), TOGETHER)
    lanes = three_lanes(bench, observer=RecordingObserver(stage, nth))
    bench.run()
    assert_only_the_victim_failed(bench, lanes)


@pytest.mark.parametrize(
    "fault",
    ["fail_rows", "fail_commit", "draft", "proposer_commit", "publisher", "text", "restore"],
)
def test_engine_proposer_or_output_fault_ends_its_lane_alone(fault):
    bench = Bench(ScriptedTarget(), TOGETHER)
    victim = {}
    if fault == "publisher":
        victim["publisher"] = RecordingPublisher(bench.trace, fail_committed=True)
    if fault == "text":
        victim["text"] = RecordingText(fail_token=0)
    if fault == "restore":
        victim["text"] = RecordingText(fail_token=0)
        bench.target.fail_restore = {VICTIM}
    lanes = three_lanes(bench, **victim)
    if fault in ("fail_rows", "fail_commit"):
        setattr(bench.target, fault, {VICTIM})
    if fault == "draft":
        bench.proposer.fail_draft = {VICTIM}
    if fault == "proposer_commit":
        bench.proposer.fail_commit = {VICTIM}
    bench.run()
    assert_only_the_victim_failed(bench, lanes)
    ended = bench.table.take_terminal()[VICTIM]
    assert ended.slot_is_reusable == (fault != "restore")


@pytest.mark.parametrize("stage", [LifecycleStage.EXECUTION, None])
def test_lookahead_fault_takes_effect_once_the_pass_has_ended(stage):
    """The slot is still being written, so the lane is restored and fails at resolution."""
    bench = Bench(ScriptedTarget(can_overlap=True), AHEAD)
    observer = RecordingObserver(stage, nth=4)
    lanes = three_lanes(bench, observer=observer)
    while lanes[VICTIM].status is not RequestStatus.TARGET_VERIFICATION_IN_FLIGHT:
        bench.step()
    if stage is None:
        bench.proposer.fail_draft = {VICTIM}
    bench.step()
    assert lanes[VICTIM].status is RequestStatus.OPTIMISTIC_DRAFT_READY
    assert lanes[VICTIM].phase.flight.failure is not None
    checkpoint = lanes[VICTIM].phase.flight.checkpoint
    bench.proposer.fail_draft = set()
    bench.run()
    assert_only_the_victim_failed(bench, lanes)
    assert len(bench.target.caches[VICTIM]) == checkpoint


@pytest.mark.parametrize("fault", ["fail_submit", "fail_completion", "fail_timings", "hangs"])
def test_fault_of_a_whole_pass_ends_its_lanes_and_no_later_ones(fault):
    bench = Bench(ScriptedTarget(), TOGETHER)
    lanes = [bench.add(max_tokens=6), bench.join(max_tokens=6)]
    setattr(bench.target, fault, True)
    if fault == "hangs":
        bench.target.ready_after_polls = None
    while not all(lane.is_terminal for lane in lanes):
        if bench.table.step() is Turn.WAITING:
            bench.now = bench.table.next_deadline()
    assert {lane.status for lane in lanes} == {RequestStatus.FAILED}
    setattr(bench.target, fault, False)
    bench.target.ready_after_polls = 1
    later = bench.join(max_tokens=6)
    bench.run()
    assert later.request.publisher.tokens == expected()[0]


def test_hung_pass_fails_with_the_disposition_that_was_applied():
    bench = Bench(ScriptedTarget(ready_after_polls=None, hangs=True), TOGETHER)
    lane = bench.add(max_tokens=6)
    bench.step(2)
    assert bench.table.step() is Turn.WAITING
    assert bench.table.next_deadline() == 30.0
    bench.now = 30.0
    bench.step()
    assert bench.target.waits == [1e-9], "it has had its time already"
    assert isinstance(lane.phase.error, errors.CompletionDeadline)
    assert lane.phase.error.cancellation == "quarantine-until-complete"


@pytest.mark.parametrize("steps", range(9))
@pytest.mark.parametrize("can_overlap", [False, True])
def test_cancel_in_any_phase_delivers_a_valid_prefix_and_frees_the_lane(steps, can_overlap):
    bench = Bench(ScriptedTarget(can_overlap=can_overlap), AHEAD)
    lanes = three_lanes(bench)
    bench.step(steps)
    victim = lanes[VICTIM]
    before = list(victim.request.publisher.tokens)
    in_flight = victim.status.value.endswith(("in_flight", "draft_ready"))
    victim.request.cancellation.cancel()
    bench.run()
    assert victim.status is RequestStatus.CANCELLED
    assert victim.request.publisher.tokens == before, "no token after a cancel"
    assert victim.request.publisher.cancelled
    if in_flight:
        assert bench.target.caches[VICTIM] == [4, *before]
    undisturbed = expected()
    assert lanes[0].request.publisher.tokens == undisturbed[0]
    assert lanes[2].request.publisher.tokens == undisturbed[2]


def test_cancel_seen_during_publication_still_delivers_that_round():
    bench = Bench(ScriptedTarget(), TOGETHER)
    lane = bench.join(max_tokens=6)
    lane.request.publisher.during = lane.request.cancellation.cancel
    bench.run()
    assert lane.status is RequestStatus.CANCELLED
    assert lane.request.publisher.tokens == [1]


def test_cancel_during_the_last_round_changes_nothing():
    bench = Bench(ScriptedTarget(), TOGETHER)
    lane = bench.join(max_tokens=1)
    lane.request.publisher.during = lane.request.cancellation.cancel
    bench.run()
    assert lane.status is RequestStatus.COMPLETED


def test_lane_without_proposals_takes_plain_steps_in_the_same_pass():
    bench = Bench(ScriptedTarget(), TOGETHER)
    speculative = bench.join(max_tokens=6)
    plain = bench.join(max_tokens=6, proposer=None)
    bench.run()
    assert plain.request.publisher.tokens == [1] * 6
    assert plain.statistics.plain_steps == 5
    assert plain.statistics.rounds == 0
    assert plain.statistics.accept_lens == ()
    assert plain.statistics.accept_rate is None
    assert speculative.statistics.rounds > 0
    assert bench.trace.count("submit") == 5, "they shared every pass"


def test_proposer_with_nothing_to_say_leads_to_plain_steps():
    bench = Bench(ScriptedTarget(), TOGETHER)
    bench.proposer.proposes = False
    lane = bench.join(max_tokens=4)
    bench.run()
    assert lane.statistics.plain_steps == 3
    assert lane.statistics.draft_tokens == lane.statistics.rounds == 0


def test_long_prompt_is_prefilled_in_chunks_between_other_lanes_passes():
    """A decoding lane waits for at most one chunk."""
    bench = Bench(ScriptedTarget(), replace(TOGETHER, prefill_chunk_tokens=4))
    bench.add(max_tokens=32)
    long = bench.join(prompt=tuple(range(2, 22)), max_tokens=2)
    bench.trace.clear()
    while long.status is RequestStatus.PREFILL:
        bench.step()
    work = [event for event in bench.trace if event in ("prefill", "submit")]
    assert work.count("prefill") == 5
    assert "prefill prefill" not in " ".join(work)
    assert bench.target.caches[1] == list(range(2, 22))


def test_failure_between_chunks_publishes_nothing():
    bench = Bench(ScriptedTarget(), replace(TOGETHER, prefill_chunk_tokens=4))
    observer = RecordingObserver(LifecycleStage.EXECUTION, nth=3)
    lane = bench.join(prompt=tuple(range(2, 22)), observer=observer)
    bench.run()
    assert lane.status is RequestStatus.FAILED
    assert lane.request.publisher.attempts == 0


def test_terminal_requests_are_handed_over_once_and_forgotten():
    bench = Bench(ScriptedTarget(), TOGETHER)
    first = bench.join(max_tokens=2)
    bench.run()
    second = bench.join(max_tokens=2)
    (one,) = bench.table.take_terminal()
    assert one.request_id == first.request_id
    assert bench.table.take_terminal() == ()
    bench.run()
    (two,) = bench.table.take_terminal()
    assert two.request_id == second.request_id != one.request_id
    assert bench.table.statistics.completed_requests == 2
    assert bench.table.statistics.active_lanes == 0


def test_thousands_of_requests_leave_no_memory_behind():
    bench = Bench(ScriptedTarget(), TOGETHER)

    def serve(count):
        for _ in range(count):
            bench.join(max_tokens=3)
            bench.run()
            bench.table.take_terminal()
            for kept in (bench.trace, bench.target.passes, bench.proposer.requests):
                kept.clear()
            bench.proposer.committed.clear()
            bench.target.caches.clear()

    serve(200)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    serve(2000)
    gc.collect()
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert grown < 20_000
    assert bench.table.statistics.completed_requests == 2200


def test_counters_tell_verifications_from_prefills_and_from_refused_passes():
    bench = Bench(ScriptedTarget(), TOGETHER)
    bench.join(max_tokens=1)
    bench.run()
    assert bench.table.statistics.prefill_passes == 1
    assert bench.table.statistics.peak_in_flight_verifications == 0
    bench.target.fail_submit = True
    bench.join(max_tokens=4)
    bench.run()
    counted = bench.table.statistics
    assert (counted.verification_passes, counted.verified_lanes) == (0, 0)
    assert counted.failed_requests == 1


def test_long_prompt_is_not_overtaken_for_ever_by_requests_that_keep_arriving():
    """It stands first in the table, a lane decodes behind it, and newcomers fill its chunks."""
    bench = Bench(ScriptedTarget(), replace(TOGETHER, prefill_chunk_tokens=4))
    long = bench.join(prompt=tuple(range(2, 42)), max_tokens=2)
    bench.join(max_tokens=60)
    newcomer = bench.join(prompt=(4, 5, 6, 7), max_tokens=1)
    arrivals = 1
    while long.status is RequestStatus.PREFILL and arrivals < 50:
        bench.step()
        if newcomer.is_terminal:
            newcomer = bench.join(prompt=(4, 5, 6, 7), max_tokens=1)
            arrivals += 1
    assert long.statistics.target_tokens >= 40
    assert arrivals < 20
