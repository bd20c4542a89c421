"""Cooperative cancellation, observed between submissions."""

from __future__ import annotations

import threading


class CancellationToken:
    """A permanent, thread-safe request to stop; setting it interrupts nothing."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        """Request cancellation, for good."""
        self._event.set()

    @property
    def is_cancelled(self) -> bool:
        """Whether cancellation has been requested."""
        return self._event.is_set()
