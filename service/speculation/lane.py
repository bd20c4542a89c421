"""A request that holds a slot: what it brings, and what it leaves behind."""

from __future__ import annotations

from dataclasses import dataclass

from service.errors import OutriderError
from service.generation.cancellation import CancellationToken
from service.generation.finish import FinishReason, MatchedStop
from service.generation.randomness import Randomness
from service.generation.sequence import GenerationSequence
from service.speculation.contract import Proposer, Sampler, Tokens
from service.speculation.lifecycle import RequestStatus
from service.speculation.observer import LifecycleObserver, ignore_lifecycle
from service.speculation.options import SpeculativeConfig
from service.speculation.publication import Publisher, TextState
from service.speculation.statistics import SequenceStatistics


@dataclass(frozen=True, slots=True)
class LaneRequest:
    """Everything the table needs to decode one request in an open slot.

    `sequence` starts empty and carries budget, window and end tokens.
    `proposer` is None where speculation is off; every step is then plain.
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
