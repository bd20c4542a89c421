"""What the wire gets of one request: its resolved settings and its messages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from service.runtime.request import Admitted, Ended, Failed, Message
from service.runtime.ticket import Ticket


class Generation:
    """One admitted request; belongs to the event loop."""

    def __init__(
        self,
        ticket: Ticket,
        wake: Callable[[], None],
        on_end: Callable[[Ticket], None],
    ) -> None:
        self._ticket = ticket
        self._wake = wake
        self._on_end = on_end

    @property
    def admitted(self) -> Admitted:
        """Return the settings that the request resolved to."""
        return self._ticket.prepared.admitted

    async def __aiter__(self) -> AsyncIterator[Message]:
        """Yield rounds as they are published, then exactly one Ended or Failed.

        A reader that is cancelled, or closes this iterator early, cancels the request.
        """
        try:
            while True:
                message = await self._ticket.outbox.get()
                if isinstance(message, Ended | Failed):
                    # Its id is free before its reader knows that it has ended.
                    self._on_end(self._ticket)
                    yield message
                    return
                yield message
        finally:
            self.cancel()

    def cancel(self) -> None:
        """Ask the request to end at its next boundary; nothing once it has ended."""
        if not self._ticket.outbox.is_closed:
            self._ticket.cancellation.cancel()
            self._wake()
