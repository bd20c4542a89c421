"""Telemetry of one sequence and of the scheduler: raw counters, and rates beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from service.speculation.capability import ExecutionTopology
from service.speculation.contract import ComponentTimings
from service.speculation.options import SchedulerOptions


class Counters:
    """A frozen record of many counters that is copied several times a round.

    Copies are made of its dict: a constructor of thirty fields would cost more
    than the rest of a round. So its subclasses have no slots.
    """

    def plus(self, **gains: float) -> Self:
        """Return a copy with these counters increased."""
        values = self.__dict__
        return self.updated(**{name: values[name] + gain for name, gain in gains.items()})

    def updated(self, **values: object) -> Self:
        """Return a copy with these fields changed.

        Raises:
            TypeError: there is no such field.
        """
        if not values.keys() <= self.__dict__.keys():
            raise TypeError(f"no such counters: {values.keys() - self.__dict__.keys()}")
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, **values)
        return copy


@dataclass(frozen=True)
class SequenceStatistics(Counters):
    """Counters of one request; times are seconds, in-flight time contains host work.

    `accept_lens` holds the accepted proposals of each round, without its tail.
    Plain steps count in `plain_steps` and `target_tokens`, never in rounds.
    """

    execution_topology: ExecutionTopology = ExecutionTopology.SINGLE
    target_tokens: int = 0
    draft_tokens: int = 0
    judged_tokens: int = 0
    accepted_tokens: int = 0
    rounds: int = 0
    accept_lens: tuple[int, ...] = ()
    emitted_tokens: int = 0
    plain_steps: int = 0
    replayed_tokens: int = 0
    optimistic_draft_tokens: int = 0
    optimistic_draft_blocks: int = 0
    reused_optimistic_tokens: int = 0
    reused_optimistic_blocks: int = 0
    consumed_optimistic_tokens: int = 0
    discarded_optimistic_tokens: int = 0
    discarded_optimistic_blocks: int = 0
    optimistic_target_bonus_tokens: int = 0
    optimistic_bonus_matches: int = 0
    optimistic_bonus_mismatches: int = 0
    adaptive_lookahead_disabled: bool = False
    optimistic_draft_time: float = 0.0
    verification_in_flight_time: float = 0.0
    component_timings_collected: bool = False
    draft_context_time: float = 0.0
    draft_assistant_time: float = 0.0
    draft_head_time: float = 0.0
    target_verification_time: float = 0.0
    scheduler_turns: int = 0
    cross_request_draft_opportunities: int = 0
    elapsed: float = 0.0

    @property
    def accept_rate(self) -> float | None:
        """Return accepted over drafted tokens; None when nothing was drafted."""
        return self.accepted_tokens / self.draft_tokens if self.draft_tokens else None

    @property
    def acceptance_rate(self) -> float | None:
        """Return accepted over judged tokens; None when nothing was judged."""
        return self.accepted_tokens / self.judged_tokens if self.judged_tokens else None

    @property
    def acceptance_length(self) -> float | None:
        """Return committed tokens a round, tails included; None without rounds."""
        if not self.rounds:
            return None
        prefilled = 1 if self.emitted_tokens else 0
        return (self.emitted_tokens - self.plain_steps - prefilled) / self.rounds

    def with_timings(self, timings: ComponentTimings | None) -> SequenceStatistics:
        """Add device seconds by component; None leaves everything as it was."""
        if timings is None:
            return self
        timed = self.plus(
            draft_context_time=timings.draft_context,
            draft_assistant_time=timings.draft_assistant,
            draft_head_time=timings.draft_head,
            target_verification_time=timings.target_verification,
        )
        return timed.updated(component_timings_collected=True)

    def with_lookahead_decision(self, options: SchedulerOptions) -> SequenceStatistics:
        """Disable lookahead for good once discarded work outweighs what was reused."""
        undecided = (
            not options.adaptive_lookahead
            or self.adaptive_lookahead_disabled
            or self.optimistic_draft_blocks < options.adaptive_lookahead_min_blocks
        )
        if undecided:
            return self
        reused, discarded = self.reused_optimistic_tokens, self.discarded_optimistic_tokens
        return self.updated(adaptive_lookahead_disabled=reused == 0 or reused < discarded)


@dataclass(frozen=True)
class SchedulerStatistics(Counters):
    """Counters of one scheduler since it started; peaks count passes."""

    execution_topology: ExecutionTopology = ExecutionTopology.SINGLE
    turns: int = 0
    cross_request_draft_opportunities: int = 0
    peak_in_flight_verifications: int = 0
    peak_optimistic_branches: int = 0
    prefill_passes: int = 0
    draft_passes: int = 0
    verification_passes: int = 0
    prefilled_tokens: int = 0
    verified_lanes: int = 0
    rounds: int = 0
    plain_steps: int = 0
    draft_tokens: int = 0
    judged_tokens: int = 0
    accepted_tokens: int = 0
    emitted_tokens: int = 0
    completed_requests: int = 0
    cancelled_requests: int = 0
    failed_requests: int = 0
    active_lanes: int = 0
