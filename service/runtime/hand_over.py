"""From the engine thread to the event loop: one call a turn, whatever the turn brought."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from service.runtime.ticket import Ticket


class HandOver:
    """Collects the tickets that a turn touched, and hands them over together."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        receive: Callable[[tuple[Ticket, ...]], None],
    ) -> None:
        self._loop = loop
        self._receive = receive
        self._touched: dict[Ticket, None] = {}

    def touch(self, ticket: Ticket) -> None:
        """Note that a ticket's outbox holds something new."""
        self._touched[ticket] = None

    def flush(self) -> None:
        """Hand the touched tickets to the loop; with none, do nothing."""
        if not self._touched:
            return
        touched = tuple(self._touched)
        self._touched.clear()
        # A loop that has closed has no readers left.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._receive, touched)
