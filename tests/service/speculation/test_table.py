"""eredu-core's table and coordinator tests, by their meaning, with one lane a pass."""

from dataclasses import replace

import pytest

from service import errors
from service.generation.cancellation import CancellationToken
from service.generation.finish import FinishReason
from service.generation.sequence import GenerationSequence
from service.speculation.completion import CompletionCancellation
from service.speculation.contract import DraftBlock, Proposal
from service.speculation.lifecycle import RequestStatus
from service.speculation.observer import LifecycleStage
from service.speculation.options import SchedulerOptions, SpeculativeConfig
from service.speculation.phase import Drafted
from service.speculation.reuse import OptimisticBranch
from service.speculation.settlement import settle_pass
from service.speculation.table import RequestTable, Turn
from tests.service.speculation.doubles import (
    PREFERS_ONE,
    Bench,
    PlainSampler,
    RecordingObserver,
    RecordingPublisher,
    ScriptedTarget,
)

Stage = LifecycleStage
LOOKAHEAD = SchedulerOptions(max_pass_lanes=1)


def lookahead_bench(**target):
    return Bench(ScriptedTarget(can_overlap=True, **target), LOOKAHEAD)


def in_flight(bench, **changes):
    """Return a lane whose first verification is submitted, and a clean trace before it."""
    lane = bench.add(**changes)
    bench.step()
    bench.trace.clear()
    bench.step()
    assert lane.status is RequestStatus.TARGET_VERIFICATION_IN_FLIGHT
    return lane


def test_table_shows_every_boundary_to_the_observer_in_order():
    bench, observer = Bench(), RecordingObserver()
    bench.add(observer=observer)
    bench.run()
    stages = observer.stages
    assert stages[:3] == [Stage.INPUT, Stage.EXECUTION, Stage.PUBLICATION]
    assert stages[3:] == [
        Stage.EXECUTION,
        Stage.EXECUTION,
        Stage.COMPLETION,
        Stage.OBSERVATION,
        Stage.CACHE_PERSISTENCE,
        Stage.PUBLICATION,
    ]


@pytest.mark.parametrize("stage", [Stage.INPUT, Stage.EXECUTION])
def test_observer_failure_before_prefill_prevents_it_and_its_publication(stage):
    bench, observer = Bench(), RecordingObserver(stage)
    publisher = RecordingPublisher()
    lane = bench.join(observer=observer, publisher=publisher)
    bench.run()
    assert lane.status is RequestStatus.FAILED
    assert bench.target.caches == {0: []}
    assert publisher.attempts == 0
    assert observer.stages[-1] is stage


def test_table_owns_actions_fairness_and_deferred_cancellation():
    bench = Bench()
    cancellation = CancellationToken()
    first = bench.add(prompt=(4,), max_tokens=8, cancellation=cancellation)
    second = bench.add(prompt=(8,))
    assert second.status is RequestStatus.READY_TO_DRAFT
    bench.step()
    assert first.status is RequestStatus.TARGET_VERIFICATION_IN_FLIGHT
    cached = bench.target.caches[0][:-2]
    assert cached == [4, *first.state.sequence.tokens]
    cancellation.cancel()
    bench.run()
    assert bench.table.statistics.cross_request_draft_opportunities > 0
    one, two = bench.table.finish()
    assert (one.request_id, one.status, one.tokens) == (
        0,
        RequestStatus.CANCELLED,
        tuple(cached[1:]),
    )
    assert (two.request_id, two.status, two.tokens) == (1, RequestStatus.COMPLETED, (1, 1, 0))
    assert bench.target.caches == {0: cached, 1: [8, 1, 1]}


def test_table_drafts_ahead_and_discards_a_branch_that_does_not_match():
    bench = lookahead_bench()
    lane = bench.add(max_tokens=5)
    bench.step(3)
    assert lane.status is RequestStatus.OPTIMISTIC_DRAFT_READY
    bench.run()
    assert lane.status is RequestStatus.COMPLETED
    assert lane.statistics.optimistic_draft_blocks > 0
    assert lane.statistics.discarded_optimistic_blocks > 0
    assert bench.table.statistics.peak_optimistic_branches == 1


def test_table_promotes_only_the_exact_matching_suffix():
    bench = lookahead_bench(full_acceptance=True)
    lane = bench.add(max_tokens=8)
    bench.step(4)
    assert lane.status is RequestStatus.READY_TO_DRAFT
    assert lane.phase.block.tokens == (1,)
    counted = lane.statistics
    assert counted.optimistic_bonus_matches == counted.consumed_optimistic_tokens == 1
    assert counted.reused_optimistic_tokens == counted.reused_optimistic_blocks == 1
    assert counted.discarded_optimistic_tokens == 0


def test_drafting_stops_where_the_grammar_is_complete():
    bench = Bench()
    lane = bench.add(max_tokens=8, width=4, sampler=PlainSampler(prefix_limit=2))
    bench.step()
    assert isinstance(lane.phase, Drafted)
    assert len(lane.phase.block.proposals) == 1
    assert lane.statistics.draft_tokens == 1


def test_round_commits_before_it_publishes_and_discards_mismatched_lookahead():
    bench = Bench()
    lane = in_flight(bench, prompt=(4, 5), max_tokens=8)
    flight = lane.phase.flight
    branch = OptimisticBranch(DraftBlock("state", (Proposal(2, PREFERS_ONE),)), (1, 1, 1))
    lane.phase = replace(lane.phase, flight=flight.with_branch(branch))
    bench.step()
    assert lane.status is RequestStatus.READY_TO_DRAFT
    assert lane.phase.block is None
    assert lane.statistics.accepted_tokens == 1
    assert lane.statistics.discarded_optimistic_tokens == 1
    assert bench.target.caches[0] == [4, 5, 1, 1]
    assert lane.state.sequence.tokens == (1, 1, 0)
    assert lane.state.text.tokens == (1, 1, 0)
    assert lane.request.publisher.tokens == [1, 1, 0]
    assert bench.trace == ["submit", "wait", "commit", "release", "publish"]


def test_cancellation_in_flight_keeps_one_input_and_publishes_no_token():
    bench = Bench()
    lane = in_flight(bench, prompt=(4, 5), max_tokens=8)
    branch = OptimisticBranch(DraftBlock("state", (Proposal(2, PREFERS_ONE),)), (1, 1, 1))
    lane.phase = replace(lane.phase, flight=lane.phase.flight.with_branch(branch))
    lane.request.cancellation.cancel()
    bench.step()
    assert lane.status is RequestStatus.CANCELLED
    assert lane.statistics.discarded_optimistic_tokens == 1
    assert bench.target.caches[0] == [4, 5, 1]
    assert lane.state.sequence.finish_reason is FinishReason.CANCELLED
    assert lane.request.publisher.tokens == [1]
    assert lane.request.publisher.cancelled
    assert bench.trace == ["submit", "wait", "commit", "release", "cancel"]


@pytest.mark.parametrize("stage", [Stage.COMPLETION, Stage.OBSERVATION, Stage.CACHE_PERSISTENCE])
def test_observer_failure_before_the_commit_restores_and_publishes_nothing(stage):
    bench, observer = Bench(), RecordingObserver(stage)
    lane = in_flight(bench, cached=(4, 5), observer=observer)
    bench.step()
    assert lane.status is RequestStatus.FAILED
    assert isinstance(lane.phase.error, errors.OutputError)
    assert lane.request.publisher.attempts == 1
    assert bench.target.caches[0] == [4, 5, 4]
    assert bench.trace == ["submit", "wait", "restore", "release"]
    assert observer.stages.count(stage) == 1


def test_cancellation_observer_failure_keeps_the_request_out():
    bench, observer = Bench(), RecordingObserver(Stage.CANCELLATION)
    cancellation, publisher = CancellationToken(), RecordingPublisher()
    cancellation.cancel()
    with pytest.raises(errors.OutputError):
        bench.join(cancellation=cancellation, observer=observer, publisher=publisher)
    assert publisher.attempts == 0
    assert observer.stages == [Stage.CANCELLATION]
    assert bench.table.is_finished
    assert bench.table.finish() == ()


def test_prefill_publication_failure_restores_cache_and_logical_state():
    bench = Bench()
    publisher = RecordingPublisher(bench.trace, fail_committed=True)
    lane = bench.join(cached=(4, 5), publisher=publisher)
    bench.run()
    assert lane.status is RequestStatus.FAILED
    assert bench.target.caches[0] == [4, 5]
    assert lane.state.sequence.tokens == ()
    assert "restore" in bench.trace


def test_pending_cancellation_that_cannot_be_published_restores_the_cache():
    bench = Bench()
    lane = in_flight(bench, cached=(4, 5))
    lane.request.publisher.fail_cancelled = True
    bench.table.cancel(lane.request_id)
    assert lane.status is RequestStatus.TARGET_VERIFICATION_IN_FLIGHT
    bench.step()
    assert lane.status is RequestStatus.FAILED
    assert not lane.state.sequence.is_finished
    assert bench.target.caches[0] == [4, 5, 4]
    assert "restore" in bench.trace


def test_direct_cancellation_that_cannot_be_published_changes_nothing():
    bench = Bench()
    lane = bench.add()
    bench.step()
    phase, state = lane.phase, lane.state
    assert isinstance(phase, Drafted)
    lane.request.publisher.fail_cancelled = True
    with pytest.raises(errors.OutputError):
        bench.table.cancel(lane.request_id)
    assert lane.phase is phase
    assert lane.state is state
    assert lane.status is RequestStatus.READY_TO_SUBMIT_VERIFICATION
    assert not lane.request.publisher.cancelled


def test_publication_observer_failure_comes_after_the_commit_and_before_the_publisher():
    bench, observer = Bench(), RecordingObserver(Stage.PUBLICATION, nth=2)
    lane = in_flight(bench, observer=observer)
    bench.step()
    assert lane.status is RequestStatus.FAILED
    assert observer.stages.count(Stage.PUBLICATION) == 2
    assert lane.request.publisher.attempts == 1
    assert bench.trace == ["submit", "wait", "commit", "release", "restore"]


def test_replayed_tokens_are_counted_after_a_delayed_completion():
    bench = Bench(ScriptedTarget(replayed_tokens=4, ready_after_polls=3))
    lane = bench.add(cached=(4, 5))
    bench.run()
    assert lane.statistics.target_tokens == 8
    assert lane.statistics.replayed_tokens == 4
    assert lane.statistics.emitted_tokens == 3
    assert lane.request.publisher.attempts == 2
    assert bench.target.caches[0] == [4, 5, 4, 1, 1]
    assert bench.trace.index("wait") < bench.trace.index("commit")


def test_failed_completion_restores_before_any_new_publication():
    bench = Bench(ScriptedTarget(fail_completion=True))
    lane = in_flight(bench, cached=(4, 5))
    bench.step()
    assert str(lane.phase.error) == "completion failed"
    assert lane.request.publisher.attempts == 1
    assert bench.target.caches[0] == [4, 5, 4]
    assert bench.trace == ["submit", "wait", "restore", "release"]


def test_pass_that_never_ends_keeps_its_capacity_without_wait_or_publication():
    bench = Bench(ScriptedTarget(ready_after_polls=None))
    first = in_flight(bench, cached=(4, 5), max_tokens=4)
    bench.table.cancel(first.request_id)
    second = bench.join(cached=(4, 5), prompt=(8,), max_tokens=4)
    turns = [bench.table.step() for _ in range(4)]
    assert turns == [Turn.WAITING] * 4
    assert first.status is RequestStatus.TARGET_VERIFICATION_IN_FLIGHT
    assert second.status is RequestStatus.PREFILL
    assert bench.target.passes[0].completion.polls >= 4
    assert not bench.target.passes[0].released
    assert bench.trace == ["submit"]
    assert bench.target.caches[0] == [4, 5, 4, 1, 1, 1]
    assert bench.target.caches[1] == [4, 5]


def test_pass_that_never_ends_lets_other_lanes_draft_but_not_submit():
    bench = Bench()
    first, second = bench.add(max_tokens=8), bench.add(prompt=(8,), max_tokens=4)
    bench.target.ready_after_polls = None
    bench.step(3)
    assert first.status is RequestStatus.TARGET_VERIFICATION_IN_FLIGHT
    assert second.status is RequestStatus.READY_TO_SUBMIT_VERIFICATION
    assert bench.table.step() is Turn.WAITING


def test_delayed_completion_keeps_every_resource_until_it_was_waited_for():
    bench = Bench()
    lane = in_flight(bench, prompt=(4, 5), max_tokens=8)
    output = bench.target.passes[0]
    assert not output.completion.ready
    assert not output.released
    assert lane.phase.flight.block.tokens == (1, 1)
    assert bench.target.caches[0] == [4, 5, 1, 1, 1]
    bench.step()
    assert output.released
    (prefilled, committed) = bench.proposer.committed[0]
    assert prefilled.committed == (1,)
    assert committed.state == (1, 1)
    assert (committed.committed, committed.accepted) == ((1, 0), 1)
    assert bench.target.caches[0] == [4, 5, 1, 1]
    assert bench.trace == ["submit", "wait", "commit", "release", "publish"]


def test_failed_completion_gives_up_every_resource_and_installs_nothing():
    bench = Bench(ScriptedTarget(fail_completion=True))
    lane = in_flight(bench, prompt=(4, 5), max_tokens=8)
    state = lane.state
    bench.step()
    assert bench.target.passes[0].released
    assert lane.state is state
    assert state.sampler.committed == (1,)
    assert len(bench.proposer.committed[0]) == 1, "only the prefill was committed"
    assert bench.trace == ["submit", "wait", "restore", "release"]


def test_invalid_completion_policy_disposes_of_the_work_before_it_restores():
    bench = Bench(ScriptedTarget(ready_after_polls=None, hangs=True))
    lane = in_flight(bench, prompt=(4, 5))
    options = replace(bench.options, completion_timeout_milliseconds=0)
    settle_pass(bench.target, lane.phase.flight.pending, [lane], options, lambda: 0.0)
    assert isinstance(lane.phase.error, errors.ZeroCompletionTimeout)
    assert bench.trace == ["submit", "quarantine", "restore", "release"]


def test_publisher_failure_restores_the_engine_and_keeps_logical_state():
    bench = Bench()
    lane = in_flight(bench, prompt=(4, 5), max_tokens=8)
    state = lane.state
    lane.request.publisher.fail_committed = True
    bench.step()
    assert isinstance(lane.phase.error, errors.PublicationError)
    assert bench.target.caches[0] == [4, 5]
    assert lane.state is state
    assert lane.request.publisher.tokens == [1]
    assert bench.trace == ["submit", "wait", "commit", "release", "publish", "restore"]


def test_commit_failure_restores_without_promotion_or_publication():
    bench = Bench(ScriptedTarget(fail_commit={0}))
    lane = in_flight(bench, prompt=(4, 5), max_tokens=8)
    state = lane.state
    bench.step()
    assert str(lane.phase.error) == "commit failed"
    assert bench.target.caches[0] == [4, 5]
    assert lane.state is state
    assert lane.request.publisher.attempts == 1
    assert bench.trace == ["submit", "wait", "commit", "restore", "release"]


def test_pending_cancellation_waits_commits_the_safe_prefix_and_drops_the_draft():
    bench = Bench()
    lane = in_flight(bench, prompt=(4, 5), max_tokens=8)
    bench.table.cancel(lane.request_id)
    bench.step()
    assert bench.target.caches[0] == [4, 5, 1]
    assert lane.state.sequence.tokens == (1,)
    assert lane.state.sampler.committed == (1,)
    assert lane.state.text.tokens == (1,)
    assert len(bench.proposer.committed[0]) == 1
    assert bench.proposer.opened == {}
    assert bench.trace == ["submit", "wait", "commit", "release", "cancel"]


def test_restore_failure_is_chained_and_retires_the_slot():
    bench = Bench(ScriptedTarget(fail_completion=True, fail_restore={0}))
    lane = in_flight(bench, prompt=(4, 5), max_tokens=8)
    bench.step()
    error = lane.phase.error
    assert isinstance(error, errors.RestoreFailed)
    assert "restore failed" in str(error)
    assert str(error.__cause__) == "completion failed"
    assert bench.target.caches[0] == [4, 5, 1, 1, 1]
    assert lane.request.publisher.attempts == 1
    assert bench.trace[:3] == ["submit", "wait", "restore"]
    (ended,) = bench.table.take_terminal()
    assert not ended.slot_is_reusable


def test_table_refuses_a_disposition_that_the_engine_cannot_honour():
    options = replace(
        SchedulerOptions(), completion_cancellation=CompletionCancellation.NATIVE_CANCEL
    )
    target = ScriptedTarget()
    with pytest.raises(errors.UnsupportedCompletionCancellation):
        RequestTable(target, options)
    assert target.trace == []


def test_add_refuses_settings_that_could_not_run():
    bench = Bench()
    with pytest.raises(errors.ZeroDraftTokens):
        bench.join(config=SpeculativeConfig(max_draft_tokens=0))
    bench.proposer.max_proposals = 0
    with pytest.raises(errors.NoDraftCapacity):
        bench.join()


def test_finished_sequence_completes_without_any_engine_work():
    bench = Bench()
    lane = bench.join(sequence=GenerationSequence(0))
    assert lane.status is RequestStatus.COMPLETED
    assert bench.table.step() is Turn.IDLE
    assert bench.trace == []


def test_finish_refuses_while_a_request_is_active_and_forgets_afterwards():
    bench = Bench()
    lane = bench.join()
    with pytest.raises(errors.ActiveRequests):
        bench.table.finish()
    bench.run()
    (ended,) = bench.table.finish()
    assert ended.finish_reason is FinishReason.MAX_TOKENS
    with pytest.raises(errors.UnknownRequest):
        bench.table.cancel(lane.request_id)
