"""Settle a pass: wait, judge each lane on copies, commit, release, publish, install.

Each lane is resolved by itself. What fails before the commit, or in publishing,
restores that lane's checkpoint and publishes nothing; a pass that fails or
outlives its deadline does so for all its lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from service.errors import OutriderError
from service.speculation.contract import (
    CommitInput,
    CommitResult,
    ComponentTimings,
    DraftBlock,
    History,
    PassOutput,
    Proposer,
    ProposerCommit,
    Target,
    TokenLogprob,
)
from service.speculation.lane import Clock, Lane, as_outrider_error
from service.speculation.observer import LifecycleStage
from service.speculation.options import SchedulerOptions
from service.speculation.phase import (
    Cancelled,
    Completed,
    DraftedAhead,
    Flight,
    InFlight,
    PendingPass,
    PrefillInFlight,
    Prefilling,
    ReadyToDraft,
    Resolving,
)
from service.speculation.resolution import LastRow, ResolvedLane, resolve_block, resolve_single
from service.speculation.reuse import discard, discard_promoted, resolve_branch
from service.speculation.round import TokenSource
from service.speculation.statistics import SequenceStatistics
from service.speculation.waiting import await_completion


@dataclass(slots=True, eq=False)
class _Entry:
    """One lane of the pass on its way through the stages.

    `rollback` is the boundary to return to on failure, `inputs` how many of
    the lane's inputs the cache keeps; `resolved` is None for a chunk that is
    not the prompt's last, and for a cancelled lane.
    """

    lane: Lane
    flight: Flight
    prefill: PrefillInFlight | None
    rollback: int
    inputs: int
    cancelling: bool
    statistics: SequenceStatistics
    resolved: ResolvedLane | None = None
    block: DraftBlock | None = None
    seed: object = None
    error: OutriderError | None = None

    @property
    def is_verification(self) -> bool:
        return self.prefill is None


def settle_pass(
    target: Target,
    pending: PendingPass,
    lanes: Sequence[Lane],
    options: SchedulerOptions,
    clock: Clock,
) -> None:
    """Bring every lane of a submitted pass to its next phase.

    The order: wait (bounded, once), telemetry, observe, resolve, commit,
    release, publish, install.
    """
    entries = [_enter_resolution(lane) for lane in lanes]
    output = pending.submission.output
    _each(entries, _observe_completion)
    waited = clock() - pending.submitted
    failure = await_completion(pending.submission.completion, options, waited)
    timings = None if failure else _timings(target, output, entries)
    for entry in entries:
        entry.error = failure or entry.error or entry.flight.failure
    seconds = clock() - pending.submitted
    _each(entries, lambda entry: _judge(entry, output, timings, seconds, options))
    _roll_back(target, entries)
    _commit(target, output, entries)
    _commit_proposers(entries)
    _roll_back(target, entries)
    output.release()
    _each(entries, _publish)
    _roll_back(target, entries)


def _enter_resolution(lane: Lane) -> _Entry:
    phase = lane.phase
    if isinstance(phase, PrefillInFlight):
        flight, rollback, inputs = phase.flight, phase.origin, phase.length
    else:
        assert isinstance(phase, InFlight | DraftedAhead)
        flight, rollback, inputs = phase.flight, phase.flight.checkpoint, 1
        lane.enter(Resolving(flight))
    return _Entry(
        lane=lane,
        flight=flight,
        prefill=phase if isinstance(phase, PrefillInFlight) else None,
        rollback=rollback,
        inputs=inputs,
        cancelling=lane.is_cancelling,
        statistics=lane.statistics,
    )


def _each(entries: Sequence[_Entry], stage: Callable[[_Entry], None]) -> None:
    """Run a stage for every lane that has not failed; keep its failure in its entry."""
    for entry in entries:
        if entry.error is None and not entry.lane.is_terminal:
            try:
                stage(entry)
            except Exception as error:  # noqa: BLE001 - isolation: any fault is this lane's
                entry.error = as_outrider_error(error)


def _roll_back(target: Target, entries: Sequence[_Entry]) -> None:
    """Restore and fail the lanes that have an error and have not ended yet."""
    for entry in entries:
        if entry.error is not None and not entry.lane.is_terminal:
            entry.lane.restore_and_fail(target, entry.rollback, entry.error)


def _observe_completion(entry: _Entry) -> None:
    if entry.is_verification:
        entry.lane.observe(LifecycleStage.COMPLETION)


def _timings(
    target: Target, output: PassOutput, entries: Sequence[_Entry]
) -> ComponentTimings | None:
    try:
        return target.take_timings(output)
    except Exception as error:  # noqa: BLE001 - isolation: the pass's lanes fail, no others
        for entry in entries:
            entry.error = as_outrider_error(error)
        return None


def _judge(
    entry: _Entry,
    output: PassOutput,
    timings: ComponentTimings | None,
    seconds: float,
    options: SchedulerOptions,
) -> None:
    """Resolve one lane on copies, up to the point where its cache may be committed."""
    lane = entry.lane
    if entry.prefill is not None:
        _judge_prefill(entry, output)
        return
    lane.observe(LifecycleStage.OBSERVATION)
    statistics = entry.statistics.plus(verification_in_flight_time=seconds)
    if lane.request.component_timings:
        statistics = statistics.with_timings(timings)
    if entry.cancelling:
        entry.statistics = discard(entry.flight.branch, statistics)
    else:
        entry.statistics = statistics
        _judge_verification(entry, output, options)
    lane.observe(LifecycleStage.CACHE_PERSISTENCE)


def _judge_prefill(entry: _Entry, output: PassOutput) -> None:
    prefill = entry.prefill
    assert prefill is not None
    if entry.cancelling:
        return
    scored = _score_prompt(entry.lane, prefill, output, entry.flight.index)
    if prefill.consumed + prefill.length == len(entry.lane.request.prompt):
        rows = output.rows(entry.flight.index)
        if entry.lane.request.prompt_logprobs is not None:
            rows = LastRow(rows, prefill.length - 1)
        resolved = resolve_single(rows, entry.lane.state, TokenSource.PREFILL, prefill.length)
        committed = replace(resolved.committed, prompt_logprobs=scored)
        entry.resolved = replace(resolved, committed=committed)
    else:
        entry.prefill = replace(prefill, logprobs=scored)


def _score_prompt(
    lane: Lane, prefill: PrefillInFlight, output: PassOutput, index: int
) -> tuple[TokenLogprob, ...]:
    """Return the log-probabilities of the prompt up to the token after the chunk, if wanted."""
    wanted, prompt = lane.request.prompt_logprobs, lane.request.prompt
    if wanted is None:
        return ()
    rows = output.rows(index)
    following = prompt[prefill.consumed + 1 : prefill.consumed + prefill.length + 1]
    scored = (rows.raw_logprob(row, token, wanted) for row, token in enumerate(following))
    return (*prefill.logprobs, *scored)


def _judge_verification(entry: _Entry, output: PassOutput, options: SchedulerOptions) -> None:
    state, block = entry.lane.state, entry.flight.block
    rows = output.rows(entry.flight.index)
    statistics = entry.statistics
    if block is None:
        resolved = resolve_single(rows, state, TokenSource.PLAIN, 1)
        statistics = statistics.plus(plain_steps=1)
    else:
        resolved = resolve_block(rows, block, state)
        statistics = _count_round(statistics, resolved)
        canonical = state.sequence.tokens + block.tokens
        entry.block, statistics = resolve_branch(
            entry.flight.branch,
            resolved.bonus,
            statistics,
            canonical=canonical,
            terminal=resolved.state.sequence.is_finished,
        )
    if not resolved.state.sequence.is_finished:
        statistics = statistics.with_lookahead_decision(options)
    entry.resolved, entry.inputs = resolved, resolved.verified_inputs
    entry.statistics = statistics


def _count_round(statistics: SequenceStatistics, resolved: ResolvedLane) -> SequenceStatistics:
    committed = resolved.committed
    counted = statistics.plus(
        rounds=1, judged_tokens=committed.judged, accepted_tokens=committed.accepted
    )
    return counted.updated(accept_lens=(*statistics.accept_lens, committed.accepted))


def _commit(target: Target, output: PassOutput, entries: Sequence[_Entry]) -> None:
    """Commit the kept inputs of every lane in one call; each has its own result."""
    live = [entry for entry in entries if entry.error is None]
    if not live:
        return
    inputs = [
        CommitInput(
            entry.flight.index, entry.lane.request.slot, entry.flight.checkpoint, entry.inputs
        )
        for entry in live
    ]
    try:
        results = target.commit(output, inputs)
    except Exception as error:  # noqa: BLE001 - isolation: the pass's lanes fail, no others
        results = [as_outrider_error(error)] * len(live)
    for entry, result in zip(live, results, strict=True):
        if isinstance(result, CommitResult):
            entry.seed = result.seed
            _count_commit(entry, result.replayed_tokens)
        else:
            entry.error = result


def _count_commit(entry: _Entry, replayed: int) -> None:
    resolved = entry.resolved
    emitted = 0 if resolved is None else len(resolved.committed.tokens)
    entry.statistics = entry.statistics.plus(
        target_tokens=replayed, replayed_tokens=replayed, emitted_tokens=emitted
    )


def _commit_proposers(entries: Sequence[_Entry]) -> None:
    """Let each proposer follow what its lanes committed, one call for each proposer."""
    groups: dict[int, tuple[Proposer, list[_Entry]]] = {}
    for entry in entries:
        proposer = entry.lane.request.proposer
        if entry.error is None and entry.resolved is not None and proposer is not None:
            groups.setdefault(id(proposer), (proposer, []))[1].append(entry)
    for proposer, group in groups.values():
        try:
            errors = proposer.commit([_proposer_commit(entry) for entry in group])
        except Exception as error:  # noqa: BLE001 - isolation: the group's lanes fail
            errors = [as_outrider_error(error)] * len(group)
        for entry, failure in zip(group, errors, strict=True):
            entry.error = failure


def _proposer_commit(entry: _Entry) -> ProposerCommit:
    resolved, block = entry.resolved, entry.flight.block
    assert resolved is not None
    return ProposerCommit(
        slot=entry.lane.request.slot,
        seed=entry.seed,
        state=block.state if block is not None and entry.block is None else None,
        history=History(entry.lane.request.prompt, resolved.state.sequence.tokens),
        committed=tuple(commit.token_id for commit in resolved.committed.tokens),
        accepted=resolved.committed.accepted,
    )


def _publish(entry: _Entry) -> None:
    """Publish, then install in one assignment; nothing is installed if publishing fails."""
    lane, resolved = entry.lane, entry.resolved
    if entry.cancelling:
        lane.publish_cancellation(entry.statistics)
        lane.enter(Cancelled())
    elif resolved is None:
        assert entry.prefill is not None
        lane.statistics = entry.statistics
        consumed = entry.prefill.consumed + entry.prefill.length
        lane.enter(Prefilling(consumed, entry.prefill.origin, entry.prefill.logprobs))
    else:
        _publish_resolved(entry, resolved)


def _publish_resolved(entry: _Entry, resolved: ResolvedLane) -> None:
    lane, state = entry.lane, resolved.state
    lane.observe(LifecycleStage.PUBLICATION)
    finished = state.sequence.is_finished
    cancelled = lane.request.publisher.publish_committed(
        state.text, resolved.committed, lane.request.cancellation, finished=finished
    )
    if cancelled or finished:
        statistics = discard_promoted(entry.block, entry.statistics)
        sequence = state.sequence.cancel() if cancelled else state.sequence
        lane.install(replace(state, sequence=sequence), statistics)
        lane.enter(Cancelled() if cancelled else Completed())
    else:
        lane.install(state, entry.statistics)
        lane.enter(ReadyToDraft(entry.seed, entry.block))
