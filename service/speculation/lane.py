"""A request that holds a slot: what it brings, its state, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from service.errors import (
    EngineError,
    InvalidStatusTransition,
    MissingFinishReason,
    OutriderError,
    RestoreFailed,
)
from service.generation.cancellation import CancellationToken
from service.generation.finish import FinishReason, MatchedStop
from service.generation.randomness import Randomness
from service.generation.sequence import GenerationSequence
from service.speculation.contract import History, Proposer, Sampler, Target, Tokens
from service.speculation.lifecycle import CancellationDisposition, Lifecycle, RequestStatus
from service.speculation.observer import LifecycleObserver, LifecycleStage, ignore_lifecycle
from service.speculation.options import SpeculativeConfig
from service.speculation.phase import (
    Cancelled,
    Completed,
    Failed,
    Phase,
    Prefilling,
    flight_of,
)
from service.speculation.publication import Publisher, TextState
from service.speculation.resolution import OutputState
from service.speculation.statistics import SequenceStatistics

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class LaneRequest:
    """Everything the table needs to decode one request in an open slot.

    `sequence` starts empty and carries budget, window and end tokens.
    `proposer` is None where speculation is off; every step is then plain. `logprobs` and
    `prompt_logprobs` are numbers of alternatives, None where none are wanted.
    """

    slot: int
    prompt: Tokens
    config: SpeculativeConfig
    sampler: Sampler
    sequence: GenerationSequence
    text: TextState
    publisher: Publisher
    cancellation: CancellationToken
    randomness: Randomness
    proposer: Proposer | None = None
    observer: LifecycleObserver = ignore_lifecycle
    lookahead: bool = True
    component_timings: bool = False
    logprobs: int | None = None
    prompt_logprobs: int | None = None


@dataclass(frozen=True, slots=True)
class TerminalRequest:
    """A request that ended, as it leaves the table.

    `slot_is_reusable` is False where a failed restore left its contents
    unknowable: the owner abandons that slot instead of closing it.
    """

    request_id: int
    slot: int
    slot_is_reusable: bool
    status: RequestStatus
    tokens: Tokens
    finish_reason: FinishReason | None
    matched_stop: MatchedStop | None
    statistics: SequenceStatistics
    error: OutriderError | None
    reasoning_tokens: int = 0


def as_outrider_error(error: Exception) -> OutriderError:
    """Return the error itself, or an engine error chained to a foreign one."""
    if isinstance(error, OutriderError):
        return error
    wrapped = EngineError(f"{type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped


class Lane:
    """One request in the table: its phase, its logical state and its counters.

    `since` is the table's turn that last concerned it.
    """

    def __init__(
        self, request_id: int, request: LaneRequest, statistics: SequenceStatistics, clock: Clock
    ) -> None:
        self.request_id = request_id
        self.request = request
        self.statistics = statistics
        self.state = OutputState(
            request.sampler,
            request.sequence,
            request.text,
            request.randomness.target,
            request.logprobs,
        )
        self.phase: Phase = Prefilling(0, None)
        self.lifecycle = Lifecycle()
        self.since = 0
        self._clock = clock
        self._started = clock()

    @property
    def status(self) -> RequestStatus:
        """Return the validated status."""
        return self.lifecycle.status

    @property
    def is_terminal(self) -> bool:
        """Whether the lane can own no further work."""
        return self.lifecycle.is_terminal

    @property
    def is_cancelling(self) -> bool:
        """Whether cancellation was asked for, by the table or by its token."""
        return self.lifecycle.cancellation_pending or self.request.cancellation.is_cancelled

    @property
    def history(self) -> History:
        """Return the prompt and the committed output."""
        return History(self.request.prompt, self.state.sequence.tokens)

    @property
    def leading(self) -> int:
        """Return the committed token that is not yet in the target's cache."""
        return self.state.sequence.tokens[-1]

    @property
    def max_proposals(self) -> int:
        """Return the widest block that settings, proposer and budget allow now."""
        if self.request.proposer is None:
            return 0
        allowed = min(
            self.request.config.max_draft_tokens, self.request.proposer.traits.max_proposals
        )
        return min(allowed, self.state.sequence.remaining)

    def observe(self, stage: LifecycleStage) -> None:
        """Show one boundary to the lane's observer."""
        self.request.observer(stage)

    def enter(self, phase: Phase) -> None:
        """Follow one legal edge and hold the new phase's resources.

        Raises:
            InvalidStatusTransition: the edge is not legal; nothing changed.
        """
        stays_in_prefill = phase.status is RequestStatus.PREFILL is self.status
        if not stays_in_prefill:
            self.lifecycle = self.lifecycle.to(phase.status)
        self.phase = phase
        if self.is_terminal:
            self.statistics = self.statistics.updated(elapsed=self._clock() - self._started)

    def install(self, state: OutputState, statistics: SequenceStatistics) -> None:
        """Make a resolved state canonical; its text's events are already delivered."""
        self.state, self.statistics = state, statistics

    def cancel(self) -> None:
        """Cancel now, or once the pass in flight has reached its boundary.

        Raises:
            OutputError: the cancelled end could not be published; nothing changed.
        """
        lifecycle, disposition = self.lifecycle.request_cancellation(
            submission_retained=flight_of(self.phase) is not None
        )
        if disposition is CancellationDisposition.CANCEL_NOW:
            self.publish_cancellation(self.statistics)
            self.enter(Cancelled())
        else:
            self.lifecycle = lifecycle

    def publish_cancellation(self, statistics: SequenceStatistics) -> None:
        """Publish the cancelled end and install it with `statistics`.

        Raises:
            OutputError: nothing was published or installed.
        """
        sequence = self.state.sequence
        if not sequence.is_finished:
            self.observe(LifecycleStage.CANCELLATION)
        cancelled = sequence.cancel()
        text = self.state.text.fork()
        if cancelled is not sequence:
            self.request.publisher.publish_cancelled(text)
        self.install(replace(self.state, sequence=cancelled, text=text), statistics)

    def fail(self, error: Exception, *, slot_is_reusable: bool = True) -> None:
        """End the lane with its error; output already published stays as it is."""
        self.enter(Failed(as_outrider_error(error), slot_is_reusable))

    def restore_and_fail(self, target: Target, checkpoint: int, error: Exception) -> None:
        """Return the slot to a boundary, then fail; a failing restore retires the slot."""
        slot = self.request.slot
        try:
            target.restore(slot, checkpoint)
        except Exception as cause:  # noqa: BLE001 - isolation: any fault is this lane's
            lost = RestoreFailed(slot, cause)
            lost.__cause__ = error
            self.fail(lost, slot_is_reusable=False)
        else:
            self.fail(error)

    def terminal(self) -> TerminalRequest:
        """Return the ended request.

        Raises:
            MissingFinishReason: it completed without a reason.
            InvalidStatusTransition: it has not ended.
        """
        phase = self.phase
        if not isinstance(phase, Completed | Cancelled | Failed):
            raise InvalidStatusTransition(self.status.value, "terminal")
        sequence = self.state.sequence
        if isinstance(phase, Completed) and sequence.finish_reason is None:
            raise MissingFinishReason(self.request_id)
        failure = phase if isinstance(phase, Failed) else None
        return TerminalRequest(
            request_id=self.request_id,
            slot=self.request.slot,
            slot_is_reusable=failure is None or failure.slot_is_reusable,
            status=phase.status,
            tokens=sequence.tokens,
            finish_reason=None if failure else sequence.finish_reason,
            matched_stop=sequence.matched_stop,
            statistics=self.statistics,
            error=failure.error if failure else None,
            reasoning_tokens=self.state.text.reasoning_tokens,
        )
