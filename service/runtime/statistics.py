"""Frozen snapshots of a running model."""

from __future__ import annotations

from dataclasses import dataclass, replace

from service.generation.finish import FinishReason
from service.runtime.request import Ended, Failed
from service.speculation.options import SchedulerOptions
from service.speculation.statistics import SchedulerStatistics


@dataclass(frozen=True, slots=True)
class Ends:
    """How many requests ended, by what their clients were told."""

    completed: int = 0
    cancelled: int = 0
    failed: int = 0

    def with_end(self, last: Ended | Failed) -> Ends:
        """Count one more."""
        if isinstance(last, Failed):
            return replace(self, failed=self.failed + 1)
        if last.reason is FinishReason.CANCELLED:
            return replace(self, cancelled=self.cancelled + 1)
        return replace(self, completed=self.completed + 1)


@dataclass(frozen=True, slots=True)
class EngineSnapshot:
    """What an engine had done, and held, at the end of a turn."""

    table: SchedulerStatistics
    ends: Ends = Ends()
    active_lanes: int = 0
    kv_cache_tokens: int = 0

    @property
    def scheduler(self) -> SchedulerStatistics:
        """Return the scheduler's counters, with those of requests by what clients were told."""
        return replace(
            self.table,
            active_lanes=self.active_lanes,
            completed_requests=self.ends.completed,
            cancelled_requests=self.ends.cancelled,
            failed_requests=self.ends.failed,
        )


@dataclass(frozen=True, slots=True)
class RuntimeStatistics:
    """One model's scheduler, queue and cache at one moment.

    The request counters of `scheduler` count every request by the end that its
    client was told, those that never got a slot included.
    """

    model: str
    scheduler: SchedulerStatistics
    options: SchedulerOptions
    active_lanes: int
    max_lanes: int
    queued_requests: int
    max_queued_requests: int
    kv_cache_tokens: int
    max_kv_cache_tokens: int
    is_serving: bool
