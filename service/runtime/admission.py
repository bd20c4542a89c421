"""The thread-safe door to an engine: bounded, and shut for good when it drains or stops."""

from __future__ import annotations

import threading
from collections.abc import Callable

from service.errors import QueueFull, ServiceError
from service.runtime.ticket import Ticket
from service.runtime.waiting_line import WaitingLine, retry_seconds


class Admission:
    """Takes tickets on the event loop and hands them out on the engine thread."""

    def __init__(self, max_queued: int, slots: int, wake: Callable[[], None]) -> None:
        self.max_queued = max_queued
        self._slots = slots
        self._wake = wake
        self._lock = threading.Lock()
        self._line: WaitingLine[Ticket] = WaitingLine()
        self._closed: ServiceError | None = None
        self._mean_seconds: float | None = None

    def __len__(self) -> int:
        return len(self._line)

    def require_room(self) -> None:
        """Refuse early what `submit` would refuse now.

        Raises:
            ServiceError: the queue is full, or the door is shut.
        """
        if self._closed is not None:
            raise self._closed
        if len(self._line) >= self.max_queued:
            raise QueueFull(self.max_queued, retry_seconds(self._mean_seconds, self._slots))

    def submit(self, ticket: Ticket) -> None:
        """Put a ticket in line and wake the engine.

        Raises:
            ServiceError: the queue is full, or the door is shut.
        """
        with self._lock:
            self.require_room()
            self._line.join(ticket)
        self._wake()

    def take(self) -> Ticket | None:
        """Remove and return the ticket that is next."""
        with self._lock:
            return self._line.take()

    def remove(self, leaves: Callable[[Ticket], bool]) -> list[Ticket]:
        """Remove and return the tickets of which `leaves` is true."""
        with self._lock:
            return self._line.remove(leaves)

    def waiting(self) -> tuple[Ticket, ...]:
        """Return the tickets in line."""
        with self._lock:
            return tuple(self._line)

    def close(self, error: ServiceError) -> None:
        """Refuse every later submission with `error`; the tickets in line stay there."""
        with self._lock:
            self._closed = error

    def observe_service(self, seconds: float) -> None:
        """Note how long a request held its slot, for the advice to those turned away."""
        mean = self._mean_seconds
        self._mean_seconds = seconds if mean is None else mean + (seconds - mean) / 8
