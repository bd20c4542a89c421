"""The thread-safe door to an engine: bounded, and shut for good when it drains or stops."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from service.errors import QueueFull, ServiceError
from service.runtime.ticket import Ticket
from service.runtime.waiting_line import WaitingLine, retry_seconds


class Admission:
    """Takes tickets on the event loop and hands them out on the engine thread.

    Those that are prepared, that wait and that hold a slot are together at most
    `max_queued` and the number of slots: a free slot is never refused to anyone.
    """

    def __init__(self, max_queued: int, slots: int, wake: Callable[[], None]) -> None:
        self.max_queued = max_queued
        self._slots = slots
        self._wake = wake
        self._lock = threading.Lock()
        self._line: WaitingLine[Ticket] = WaitingLine()
        self._arriving = 0
        self._holding = 0
        self._closed: ServiceError | None = None
        self._mean_seconds: float | None = None

    def __len__(self) -> int:
        return len(self._line)

    @contextmanager
    def arrival(self) -> Iterator[None]:
        """Hold a place for a request while it is prepared; submit its ticket inside.

        Raises:
            ServiceError: the queue is full, or the door is shut.
        """
        with self._lock:
            self._require_room()
            self._arriving += 1
        try:
            yield
        finally:
            with self._lock:
                self._arriving -= 1

    def _require_room(self) -> None:
        self._require_open()
        waiting = self._arriving + len(self._line)
        if waiting + self._holding >= self.max_queued + self._slots:
            retry = retry_seconds(self._mean_seconds, self._slots)
            raise QueueFull(waiting, self._holding, retry)

    def _require_open(self) -> None:
        if self._closed is not None:
            # One error is raised for every refusal: its traceback must not grow with them.
            raise self._closed.with_traceback(None)

    def submit(self, ticket: Ticket) -> None:
        """Put the ticket of an arrival in line and wake the engine.

        Raises:
            ServiceError: the door has been shut meanwhile.
        """
        with self._lock:
            self._require_open()
            self._line.join(ticket)
        self._wake()

    def take(self) -> Ticket | None:
        """Remove and return the ticket that is next; it counts as holding a slot."""
        with self._lock:
            ticket = self._line.take()
            self._holding += ticket is not None
            return ticket

    def release(self, seconds: float) -> None:
        """Note that a taken ticket has given back its slot, after so many seconds."""
        with self._lock:
            self._holding -= 1
            mean = self._mean_seconds
            self._mean_seconds = seconds if mean is None else mean + (seconds - mean) / 8

    def remove(self, leaves: Callable[[Ticket], bool]) -> list[Ticket]:
        """Remove and return the waiting tickets of which `leaves` is true."""
        with self._lock:
            return self._line.remove(leaves)

    def waiting(self) -> tuple[Ticket, ...]:
        """Return the tickets in line."""
        with self._lock:
            return tuple(self._line)

    def close(self, error: ServiceError) -> None:
        """Refuse every later arrival with `error`; the tickets in line stay there."""
        with self._lock:
            self._closed = error
