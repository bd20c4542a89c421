"""A model with its engine at work: the door, the thread and the snapshot, held together."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from service.runtime.admission import Admission
from service.runtime.engine import Engine
from service.runtime.engine_thread import EngineThread
from service.runtime.hand_over import HandOver
from service.runtime.models import LoadedModel
from service.runtime.statistics import RuntimeStatistics
from service.runtime.ticket import Ticket
from service.speculation.table import RequestTable

Receive = Callable[[tuple[Ticket, ...]], None]


class RunningModel:
    """One model's engine, from its start to its end; belongs to the event loop.

    Raises:
        SettingError, UnsupportedCompletionCancellation: the options do not fit the engine.
    """

    def __init__(
        self,
        model: LoadedModel,
        max_queued: int,
        clock: Callable[[], float],
        receive: Receive,
        on_stopped: Callable[[], None],
    ) -> None:
        loop = asyncio.get_running_loop()
        wake = threading.Event()
        self.model = model
        self.wake = wake.set
        self.admission = Admission(max_queued, model.target.limits.max_slots, wake.set)
        table = RequestTable(model.target, model.scheduler, clock)
        self.engine = Engine(model, table, self.admission, HandOver(loop, receive), clock)
        self.thread = EngineThread(model.name, wake, clock, on_stopped)

    def start(self) -> None:
        """Start the engine's thread."""
        self.thread.start(self.engine)

    def statistics(self) -> RuntimeStatistics:
        """Return the statistics as of the last turn; never blocks."""
        limits, snapshot = self.model.target.limits, self.engine.snapshot
        return RuntimeStatistics(
            model=self.model.name,
            scheduler=snapshot.scheduler,
            options=self.model.scheduler,
            active_lanes=snapshot.active_lanes,
            max_lanes=limits.max_slots,
            queued_requests=len(self.admission),
            max_queued_requests=self.admission.max_queued,
            kv_cache_tokens=snapshot.kv_cache_tokens,
            max_kv_cache_tokens=limits.max_slots * limits.max_context,
            is_serving=self.thread.is_running,
        )
