"""The thread that turns an engine, sleeps when it can only wait, and ends it on a fault."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable

from service.errors import Draining, EngineStopped, OutriderError, ServiceError
from service.runtime.engine import Engine
from service.speculation.table import Turn

_log = logging.getLogger(__name__)

_STARVED_SECONDS = 0.05
"""How often to look for a slot that only unfinished work can free: nothing tells of that."""

_LONGEST_SLEEP = 3600.0
"""Below what the platform can wait for; a deadline may lie millennia ahead."""

_SWITCH_SECONDS = 0.0005
"""How long the event loop may keep the interpreter from an engine that comes out of a pass.

Python's own 5 ms are a fifth of a pass of eight lanes.
"""

_SHORTEST_SLEEP = 0.001
"""Keeps a deadline that rounding puts just ahead from turning sleep into a spin."""


class EngineThread:
    """Runs one engine; every method may be called from any thread.

    `wake` makes it look again, whatever it sleeps on. A fault that escapes a
    turn stops it for good, and then `on_stopped` is called on its thread.
    """

    def __init__(
        self,
        name: str,
        wake: threading.Event,
        clock: Callable[[], float],
        on_stopped: Callable[[], None],
    ) -> None:
        self._wake = wake
        self._clock = clock
        self._on_stopped = on_stopped
        self._eviction: ServiceError | None = None
        self._stopping = False
        self._name = f"outrider-{name}"
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Whether turns are still being made."""
        return self._thread is not None and self._thread.is_alive() and not self._stopping

    def start(self, engine: Engine) -> None:
        """Begin to turn an engine; it belongs to this thread from now on."""
        self._thread = threading.Thread(
            target=self._run, args=(engine,), name=self._name, daemon=True
        )
        self._thread.start()

    def evict(self, verdict: ServiceError) -> None:
        """End every request for this reason, each at its next boundary."""
        self._eviction = verdict
        self._wake.set()

    def stop(self) -> None:
        """End after the turn in progress; requests that are left fail as if drained."""
        self._stopping = True
        self._wake.set()

    def join(self, seconds: float | None = None) -> None:
        """Wait until the thread has ended, or for so long: a hung device holds it for ever."""
        if self._thread is not None:
            self._thread.join(seconds)

    def cycle(self, engine: Engine) -> None:
        """Make one turn, and sleep if it did nothing."""
        # Cleared before the turn looks at anything: what is set later is not lost.
        self._wake.clear()
        if self._eviction is not None:
            verdict, self._eviction = self._eviction, None
            engine.evict(verdict)
        turn = engine.turn()
        if turn is Turn.WORKED:
            return
        if turn is Turn.WAITING:
            engine.on_progress(self._wake.set)
        self._wake.wait(self._longest_sleep(engine))

    def _longest_sleep(self, engine: Engine) -> float | None:
        deadline = engine.next_deadline()
        limit = None
        if deadline is not None:
            limit = min(_LONGEST_SLEEP, max(_SHORTEST_SLEEP, deadline - self._clock()))
        if engine.is_starved:
            return _STARVED_SECONDS if limit is None else min(_STARVED_SECONDS, limit)
        return limit

    def _run(self, engine: Engine) -> None:
        sys.setswitchinterval(_SWITCH_SECONDS)
        last: ServiceError = Draining()
        try:
            while not self._stopping:
                self.cycle(engine)
        except Exception as fault:  # noqa: BLE001 - whatever it is, no further turn is safe
            _log.exception("the engine stopped")
            last = EngineStopped(_cause(fault))
        finally:
            self._stopping = True
            engine.abort(last)
            self._on_stopped()


def _cause(fault: Exception) -> str:
    """Say what happened; a foreign error's text may hold what is not for clients."""
    return str(fault) if isinstance(fault, OutriderError) else type(fault).__name__
