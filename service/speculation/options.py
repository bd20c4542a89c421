"""Settings of the speculative core, of a request and of the scheduler."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from service.errors import (
    CompletionTimeoutTooLarge,
    InvalidTemperature,
    LookaheadWithoutBranchCapacity,
    OptionOutOfRange,
    TooManyLookaheadBlocks,
    ZeroAdaptiveLookaheadWindow,
    ZeroCompletionTimeout,
    ZeroDraftTokens,
    ZeroInFlightVerifications,
)
from service.speculation.completion import BoundedWait, CompletionCancellation

_MILLISECONDS = 1000.0
_MAX_MILLISECONDS = 2**64 - 1
_MAX_COUNT = 2**32 - 1
_RANGES = (
    ("max_in_flight_verifications", 1, _MAX_COUNT),
    ("max_optimistic_branches", 0, _MAX_COUNT),
    ("adaptive_lookahead_min_blocks", 0, _MAX_COUNT),
    ("completion_timeout_milliseconds", 0, _MAX_MILLISECONDS),
    ("max_pass_lanes", 1, _MAX_COUNT),
    ("prefill_chunk_tokens", 1, _MAX_COUNT),
    ("merge_after_passes", 0, _MAX_COUNT),
)
"""What the contract's counts can hold."""


@dataclass(frozen=True, slots=True)
class SpeculativeConfig:
    """One request's speculation: budget, width, temperature and end tokens.

    `fixed_width` keeps proposer and width as admitted (a seeded sample must);
    otherwise `max_draft_tokens` is the most that adaptation may use.
    """

    max_tokens: int = 256
    max_draft_tokens: int = 4
    temperature: float = 0.0
    eos_token_ids: frozenset[int] = frozenset()
    fixed_width: bool = False

    def validate(self) -> SpeculativeConfig:
        """Return self.

        Raises:
            ZeroDraftTokens, InvalidTemperature: the field is refused.
        """
        if self.max_draft_tokens <= 0:
            raise ZeroDraftTokens(self.max_draft_tokens)
        if not math.isfinite(self.temperature) or self.temperature < 0.0:
            raise InvalidTemperature(self.temperature)
        return self


@dataclass(frozen=True, slots=True)
class SchedulerOptions:
    """Bounds of the fair scheduler; limits count passes, not lanes.

    `merge_after_passes`: on split queues, lanes that have drifted into groups
    are drafted together again after this many partial passes.
    """

    max_in_flight_verifications: int = 1
    max_optimistic_branches: int = 1
    lookahead_blocks: int = 1
    adaptive_lookahead: bool = True
    adaptive_lookahead_min_blocks: int = 4
    completion_timeout_milliseconds: int = 30_000
    completion_cancellation: CompletionCancellation = (
        CompletionCancellation.QUARANTINE_UNTIL_COMPLETE
    )
    max_pass_lanes: int = 8
    prefill_chunk_tokens: int = 128
    merge_after_passes: int = 4

    def with_lookahead(self, *, enabled: bool) -> SchedulerOptions:
        """Turn same-request lookahead on or off."""
        branches = self.max_optimistic_branches
        return replace(
            self,
            lookahead_blocks=int(enabled),
            max_optimistic_branches=max(1, branches) if enabled else branches,
        )

    def with_completion_wait(
        self, timeout_seconds: float, cancellation: CompletionCancellation
    ) -> SchedulerOptions:
        """Select the completion deadline and what happens when it passes."""
        milliseconds = timeout_seconds * _MILLISECONDS
        if milliseconds > _MAX_MILLISECONDS:
            raise CompletionTimeoutTooLarge(timeout_seconds)
        if milliseconds < 1:
            raise ZeroCompletionTimeout(timeout_seconds)
        return replace(
            self,
            completion_timeout_milliseconds=int(milliseconds),
            completion_cancellation=cancellation,
        )

    def completion_wait(self) -> BoundedWait:
        """Return the bounded wait that these options ask for."""
        return BoundedWait(
            self.completion_timeout_milliseconds / _MILLISECONDS, self.completion_cancellation
        )

    def validate(self) -> SchedulerOptions:
        """Return self.

        Raises:
            SettingError: the first refused field, by its subclass.
        """
        if self.max_in_flight_verifications <= 0:
            raise ZeroInFlightVerifications(self.max_in_flight_verifications)
        if not 0 <= self.lookahead_blocks <= 1:
            raise TooManyLookaheadBlocks(self.lookahead_blocks)
        if self.lookahead_blocks and self.max_optimistic_branches <= 0:
            raise LookaheadWithoutBranchCapacity(self.max_optimistic_branches)
        adaptive = self.lookahead_blocks and self.adaptive_lookahead
        if adaptive and self.adaptive_lookahead_min_blocks <= 0:
            raise ZeroAdaptiveLookaheadWindow(self.adaptive_lookahead_min_blocks)
        for name, lowest, highest in _RANGES:
            value: int = getattr(self, name)
            if not lowest <= value <= highest:
                raise OptionOutOfRange(name, value, lowest, highest)
        self.completion_wait()
        return self
