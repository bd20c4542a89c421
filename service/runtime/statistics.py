"""Frozen snapshots of a running model, and of the requests it holds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from service.speculation.options import SchedulerOptions
from service.speculation.statistics import SchedulerStatistics


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


class RequestPlace(Enum):
    """Where a live request stands: in the line for a slot, or in one."""

    QUEUED = "queued"
    ACTIVE = "active"


@dataclass(frozen=True, slots=True)
class LiveRequest:
    """A request that has not ended; `age` is seconds since its arrival."""

    request_id: str
    caller: str
    model: str
    place: RequestPlace
    prompt_tokens: int
    emitted_tokens: int
    age: float
