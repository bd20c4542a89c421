"""The live requests by caller and id: unique while they live, free again afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from service.errors import DuplicateRequest
from service.generation.cancellation import CancellationToken
from service.runtime.ticket import Ticket


@dataclass(slots=True, eq=False)
class Reservation:
    """A request from its arrival on; the ticket comes with its preparation."""

    caller: str
    request_id: str
    cancellation: CancellationToken = field(default_factory=CancellationToken)
    ticket: Ticket | None = None


class LiveRequests:
    """Holds what lives; belongs to the event loop."""

    def __init__(self) -> None:
        self._by_key: dict[tuple[str, str], Reservation] = {}
        self._empty = asyncio.Event()
        self._empty.set()

    @contextmanager
    def reserve(self, caller: str, request_id: str) -> Iterator[Reservation]:
        """Hold an id while its request is prepared; it is free again if that fails.

        Raises:
            DuplicateRequest: a live request of this caller has this id.
        """
        key = (caller, request_id)
        if key in self._by_key:
            raise DuplicateRequest(request_id)
        reservation = Reservation(caller, request_id)
        self._by_key[key] = reservation
        self._empty.clear()
        try:
            yield reservation
        except BaseException:
            self._remove(key)
            raise

    def find(self, caller: str, request_id: str) -> Reservation | None:
        """Return a live request."""
        return self._by_key.get((caller, request_id))

    def forget(self, ticket: Ticket) -> None:
        """Free the id of a request that has ended; nothing if that was done before."""
        key = (ticket.caller, ticket.prepared.admitted.request_id)
        reservation = self._by_key.get(key)
        if reservation is not None and reservation.ticket is ticket:
            self._remove(key)

    async def until_empty(self) -> None:
        """Return once nothing lives."""
        await self._empty.wait()

    def _remove(self, key: tuple[str, str]) -> None:
        del self._by_key[key]
        if not self._by_key:
            self._empty.set()
