"""Scripted doubles of the core's collaborators, with one shared trace of what happened."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from service.errors import EngineError, OutriderError, PublicationError
from service.generation.cancellation import CancellationToken
from service.generation.finish import FinishReason, MatchedStop
from service.generation.randomness import AddressedRandomness, Randomness, RandomStream
from service.generation.sequence import GenerationSequence
from service.speculation.capability import ExecutionTopology
from service.speculation.completion import (
    BoundedWait,
    Completed,
    CompletionCancellation,
    DeadlineExceeded,
)
from service.speculation.contract import (
    CommitInput,
    CommitResult,
    ComponentTimings,
    DraftBlock,
    DraftRequest,
    PrefillInput,
    Proposal,
    ProposerCommit,
    ProposerTraits,
    Submission,
    TargetLimits,
    TokenLogprob,
    VerificationInput,
)
from service.speculation.lane import Lane, LaneRequest
from service.speculation.observer import LifecycleStage
from service.speculation.options import SchedulerOptions, SpeculativeConfig
from service.speculation.publication import RoundTokens
from service.speculation.table import RequestTable, Turn

Trace = list[str]


@dataclass(frozen=True)
class Weights:
    """A dense distribution over ids 0, 1, …; it notes what is asked of it."""

    values: tuple[float, ...]
    trace: Trace | None = field(default=None, compare=False)

    def _note(self, what: str) -> None:
        if self.trace is not None:
            self.trace.append(what)

    def probability(self, token: int) -> float:
        self._note("probability")
        return self.values[token]

    def sample(self, draw: float | None) -> int:
        self._note("sample")
        if draw is None:
            return max(range(len(self.values)), key=lambda i: (self.values[i], -i))
        total = 0.0
        for token, value in enumerate(self.values):
            total += value
            if draw < total:
                return token
        return max(i for i, value in enumerate(self.values) if value > 0)

    def excess_over(self, draft: Weights) -> Weights | None:
        self._note("difference")
        excess = [max(0.0, p - q) for p, q in zip(self.values, draft.values, strict=True)]
        mass = sum(excess)
        return Weights(tuple(e / mass for e in excess), self.trace) if mass > 0 else None


PREFERS_ZERO = Weights((0.731, 0.269))
PREFERS_ONE = Weights((0.269, 0.731))


@dataclass(frozen=True)
class FixedStream(RandomStream):
    """A stream whose every draw is `value`; it still counts them."""

    value: float = 0.5
    trace: Trace | None = None

    def draw(self) -> tuple[float, RandomStream]:
        if self.trace is not None:
            self.trace.append("uniform")
        return self.value, replace(self, draws=self.draws + 1)


@dataclass(frozen=True)
class PlainSampler:
    """Remembers what was committed; `prefix_limit` plays a grammar that ends there."""

    temperature: float = 0.7
    committed: tuple[int, ...] = ()
    prefix_limit: int | None = None
    supports_optimistic_promotion: bool = True

    def advance(self, distribution: Weights, token: int) -> PlainSampler:
        return replace(self, committed=(*self.committed, token))

    def grammar_is_complete(self) -> bool:
        return False

    def prefix_is_complete(self, generated: Sequence[int]) -> bool:
        return self.prefix_limit is not None and len(generated) >= self.prefix_limit

    def may_follow(self, generated: Sequence[int], token: int) -> bool:
        return True


class ScriptedCompletion:
    """Ends when told to, after a number of polls, or never."""

    def __init__(self, target: ScriptedTarget) -> None:
        self._target = target
        self.polls = 0
        self.ready = False

    def is_complete(self) -> bool:
        self.polls += 1
        after = self._target.ready_after_polls
        if after is not None and self.polls >= after:
            self.ready = True
        return self.ready

    def wait(self) -> None:
        self._target.trace.append("wait")
        self.ready = True
        if self._target.fail_completion:
            raise EngineError("completion failed")

    def wait_bounded(self, policy: BoundedWait) -> Completed | DeadlineExceeded:
        self._target.waits.append(policy.timeout)
        if self._target.hangs:
            self._target.trace.append("quarantine")
            return DeadlineExceeded(policy.cancellation)
        self.wait()
        return Completed()

    def on_complete(self, callback: Callable[[], None]) -> None:
        self._target.callbacks.append(callback)


@dataclass
class ScriptedRows:
    """One lane's rows; unreadable before the wait, or where the lane is to fail."""

    output: ScriptedOutput
    index: int

    def distribution(self, row: int, sampler: PlainSampler) -> Weights:
        assert self.output.completion.ready, "rows were read before the wait"
        assert not self.output.released, "rows were read after the release"
        slot = self.output.slots[self.index]
        if slot in self.output.target.fail_rows:
            raise EngineError(f"rows of slot {slot} failed")
        return self.output.values[row]

    def logprob(
        self, row: int, sampler: PlainSampler, token: int, alternatives: int
    ) -> TokenLogprob:
        return TokenLogprob(math.log(self.distribution(row, sampler).probability(token)))

    def raw_logprob(self, row: int, token: int, alternatives: int) -> TokenLogprob:
        return self.logprob(row, PlainSampler(), token, alternatives)


@dataclass
class ScriptedOutput:
    """A pass's rows, its completion and whether its buffers were given back."""

    target: ScriptedTarget
    completion: ScriptedCompletion
    slots: list[int]
    values: list[Weights]
    released: bool = False

    def rows(self, lane: int) -> ScriptedRows:
        return ScriptedRows(self, lane)

    def release(self) -> None:
        self.released = True
        self.target.trace.append("release")


@dataclass
class ScriptedTarget:
    """A target whose caches are lists of tokens, and whose faults are switches.

    Prefill prefers token 1. Verification row 1 prefers 0 and the others 1, so
    that a block of ones is accepted once and then replaced; with
    `full_acceptance` every row prefers 1.
    """

    trace: Trace = field(default_factory=list)
    full_acceptance: bool = False
    ready_after_polls: int | None = 1
    fail_completion: bool = False
    fail_submit: bool = False
    hangs: bool = False
    fail_commit: set[int] = field(default_factory=set)
    fail_restore: set[int] = field(default_factory=set)
    fail_rows: set[int] = field(default_factory=set)
    fail_timings: bool = False
    replayed_tokens: int = 0
    can_overlap: bool = False
    max_pass_lanes: int = 8
    caches: dict[int, list[int]] = field(default_factory=dict)
    passes: list[ScriptedOutput] = field(default_factory=list)
    callbacks: list[Callable[[], None]] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    @property
    def limits(self) -> TargetLimits:
        return TargetLimits(
            vocabulary_size=2,
            max_context=64,
            max_slots=8,
            max_pass_lanes=self.max_pass_lanes,
            max_pass_rows=128,
            cancellations=frozenset({CompletionCancellation.QUARANTINE_UNTIL_COMPLETE}),
            topology=(
                ExecutionTopology.SAME_DEVICE_SPLIT
                if self.can_overlap
                else ExecutionTopology.SINGLE
            ),
            can_overlap_drafting=self.can_overlap,
            supports_component_timings=True,
        )

    def sampler(self, request: object) -> PlainSampler:
        return PlainSampler()

    def open(self, tokens: Sequence[int] = ()) -> int:
        slot = len(self.caches)
        self.caches[slot] = list(tokens)
        return slot

    def close(self, slot: int) -> None:
        self.trace.append("close")

    def abandon(self, slot: int) -> None:
        self.trace.append("abandon")

    def checkpoint(self, slot: int) -> int:
        return len(self.caches[slot])

    def restore(self, slot: int, checkpoint: int) -> None:
        self.trace.append("restore")
        if slot in self.fail_restore:
            raise EngineError("restore failed")
        del self.caches[slot][checkpoint:]

    def prefill(self, lanes: Sequence[PrefillInput]) -> Submission:
        self.trace.append("prefill")
        for lane in lanes:
            self.caches[lane.slot].extend(lane.tokens)
        return self._submission([lane.slot for lane in lanes], [PREFERS_ONE], ready=True)

    def submit(self, lanes: Sequence[VerificationInput]) -> Submission:
        self.trace.append("submit")
        if self.fail_submit:
            for lane in lanes:
                self.caches[lane.slot].append(99)
            raise EngineError("submit failed")
        for lane in lanes:
            self.caches[lane.slot].extend(lane.tokens)
        second = PREFERS_ONE if self.full_acceptance else PREFERS_ZERO
        rows = [PREFERS_ONE, second] + [PREFERS_ONE] * 8
        return self._submission([lane.slot for lane in lanes], rows, ready=False)

    def _submission(self, slots: list[int], rows: list[Weights], *, ready: bool) -> Submission:
        completion = PrefilledCompletion(self) if ready else ScriptedCompletion(self)
        output = ScriptedOutput(self, completion, slots, rows)
        if not ready:
            self.passes.append(output)
        return Submission(output, completion)

    def commit(
        self, output: ScriptedOutput, lanes: Sequence[CommitInput]
    ) -> list[CommitResult | OutriderError]:
        assert output.completion.ready, "commit before the wait"
        prefill = isinstance(output.completion, PrefilledCompletion)
        if not prefill:
            self.trace.append("commit")
        return [self._commit(lane, prefill=prefill) for lane in lanes]

    def _commit(self, lane: CommitInput, *, prefill: bool) -> CommitResult | OutriderError:
        if lane.slot in self.fail_commit and not prefill:
            return EngineError("commit failed")
        del self.caches[lane.slot][lane.checkpoint + lane.inputs :]
        replayed = 0 if prefill else self.replayed_tokens
        return CommitResult(seed=tuple(self.caches[lane.slot]), replayed_tokens=replayed)

    def take_timings(self, output: ScriptedOutput) -> ComponentTimings | None:
        if self.fail_timings and not isinstance(output.completion, PrefilledCompletion):
            raise EngineError("timings failed")
        return None


class PrefilledCompletion(ScriptedCompletion):
    """The completion of a prefill pass: ended at once, and silent in the trace."""

    def __init__(self, target: ScriptedTarget) -> None:
        super().__init__(target)
        self.ready = True

    def is_complete(self) -> bool:
        return True

    def wait(self) -> None:
        return


@dataclass
class ScriptedProposer:
    """Proposes token 1 with the distribution that it was drawn from; state is what it fed."""

    trace: Trace = field(default_factory=list)
    max_proposals: int = 8
    can_branch: bool = True
    proposes: bool = True
    timings: ComponentTimings | None = None
    fail_draft: set[int] = field(default_factory=set)
    fail_commit: set[int] = field(default_factory=set)
    opened: dict[int, tuple[int, ...]] = field(default_factory=dict)
    committed: dict[int, list[ProposerCommit]] = field(default_factory=dict)
    requests: list[DraftRequest] = field(default_factory=list)

    @property
    def traits(self) -> ProposerTraits:
        return ProposerTraits("scripted", None, self.max_proposals, True, self.can_branch)

    def open(self, slot: int, prompt: tuple[int, ...]) -> None:
        self.opened[slot] = prompt

    def close(self, slot: int) -> None:
        self.opened.pop(slot, None)

    def draft(
        self, requests: Sequence[DraftRequest], pass_lanes: int
    ) -> list[DraftBlock | OutriderError | None]:
        self.requests.extend(requests)
        return [self._draft(request) for request in requests]

    def _draft(self, request: DraftRequest) -> DraftBlock | OutriderError | None:
        if request.slot in self.fail_draft:
            return EngineError(f"draft of slot {request.slot} failed")
        if not self.proposes:
            return None
        generated = list(request.history.generated)
        fed = request.state if isinstance(request.state, tuple) else ()
        proposals: list[Proposal] = []
        while len(proposals) < request.width:
            fed = (*fed, generated[-1])
            proposals.append(Proposal(1, PREFERS_ONE))
            generated.append(1)
            if 1 in request.eos_token_ids or request.sampler.prefix_is_complete(generated):
                break
        return DraftBlock(fed, tuple(proposals))

    def take_timings(self) -> ComponentTimings | None:
        return self.timings

    def commit(self, lanes: Sequence[ProposerCommit]) -> list[OutriderError | None]:
        for lane in lanes:
            self.committed.setdefault(lane.slot, []).append(lane)
        return [
            EngineError("proposer commit failed") if lane.slot in self.fail_commit else None
            for lane in lanes
        ]


class RecordingText:
    """A text state that records tokens and how it ended; forks share nothing."""

    def __init__(self, tokens: tuple[int, ...] = (), *, fail_token: int | None = None) -> None:
        self.tokens = tokens
        self.ended: FinishReason | None = None
        self.fail_token = fail_token

    reasoning_tokens: ClassVar[int] = 0

    def fork(self) -> RecordingText:
        return RecordingText(self.tokens, fail_token=self.fail_token)

    def push_token(self, token: int) -> MatchedStop | None:
        if token == self.fail_token:
            raise PublicationError("text failed")
        self.tokens += (token,)
        return None

    def finish(self, reason: FinishReason) -> None:
        self.ended = reason

    def cancel(self) -> None:
        self.ended = FinishReason.CANCELLED

    def take_events(self) -> tuple[()]:
        return ()


@dataclass
class RecordingPublisher:
    """Keeps what was published; refuses on request; cancels in the middle on request."""

    trace: Trace = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    rounds: list[RoundTokens] = field(default_factory=list)
    cancelled: bool = False
    fail_committed: bool = False
    fail_cancelled: bool = False
    attempts: int = 0
    during: Callable[[], None] | None = None

    def publish_committed(
        self,
        text: RecordingText,
        committed: RoundTokens,
        cancellation: CancellationToken,
        *,
        finished: bool,
    ) -> bool:
        self.attempts += 1
        self.trace.append("publish")
        if self.fail_committed:
            raise PublicationError("injected failure")
        self.rounds.append(committed)
        self.tokens += [commit.token_id for commit in committed.tokens]
        if self.during is not None:
            self.during()
        return cancellation.is_cancelled and not finished

    def publish_cancelled(self, text: RecordingText) -> None:
        self.attempts += 1
        self.trace.append("cancel")
        if self.fail_cancelled:
            raise PublicationError("injected cancellation failure")
        text.cancel()
        self.cancelled = True


@dataclass
class RecordingObserver:
    """Notes every stage; raises before the nth visit of one of them."""

    fail: LifecycleStage | None = None
    nth: int = 1
    stages: list[LifecycleStage] = field(default_factory=list)

    def __call__(self, stage: LifecycleStage) -> None:
        self.stages.append(stage)
        if stage is self.fail and self.stages.count(stage) >= self.nth:
            raise PublicationError(f"injected {stage.value} failure")


@dataclass
class Bench:
    """A table over scripted doubles, and everything a test looks at."""

    target: ScriptedTarget = field(default_factory=ScriptedTarget)
    options: SchedulerOptions = field(
        default_factory=lambda: SchedulerOptions(max_pass_lanes=1).with_lookahead(enabled=False)
    )
    now: float = 0.0

    def __post_init__(self) -> None:
        self.trace = self.target.trace
        self.proposer = ScriptedProposer(self.trace)
        self.table = RequestTable(self.target, self.options, lambda: self.now)

    def request(
        self,
        *,
        prompt: tuple[int, ...] = (4,),
        cached: tuple[int, ...] = (),
        max_tokens: int = 3,
        width: int = 2,
        **changes: object,
    ) -> LaneRequest:
        """Return a request in a fresh slot that already holds `cached`."""
        request = LaneRequest(
            slot=self.target.open(cached),
            prompt=prompt,
            config=SpeculativeConfig(max_tokens, width, 0.7),
            sampler=PlainSampler(),
            sequence=GenerationSequence(max_tokens),
            text=RecordingText(),
            publisher=RecordingPublisher(self.trace),
            cancellation=CancellationToken(),
            randomness=Randomness(FixedStream(b""), AddressedRandomness(b"draft")),
            proposer=self.proposer,
        )
        return replace(request, **changes)

    def add(self, **changes: object) -> Lane:
        """Add a request and run its prefill: it ends ready to draft."""
        lane = self.join(**changes)
        while lane.status.value == "prefill":
            assert self.table.step() is Turn.WORKED
        return lane

    def join(self, **changes: object) -> Lane:
        """Add a request without stepping."""
        return self.table.lane(self.table.add(self.request(**changes)))

    def step(self, times: int = 1) -> None:
        for _ in range(times):
            self.table.step()

    def run(self) -> None:
        self.table.run(lambda: None)
