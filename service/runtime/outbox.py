"""A request's messages between the engine thread that appends and the loop that reads."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable

from service.errors import SlowConsumer
from service.generation.events import (
    ReasoningDelta,
    SemanticEvent,
    TextDelta,
    ToolArgumentsDelta,
)
from service.runtime.request import Ended, Failed, Message
from service.speculation.publication import PublishedRound


def joined_events(
    first: tuple[SemanticEvent, ...], second: tuple[SemanticEvent, ...]
) -> tuple[SemanticEvent, ...]:
    """Return both runs of events as one, two deltas that meet made one delta."""
    if not first or not second:
        return first + second
    match first[-1], second[0]:
        case TextDelta(before), TextDelta(after):
            met: SemanticEvent = TextDelta(before + after)
        case ReasoningDelta(before), ReasoningDelta(after):
            met = ReasoningDelta(before + after)
        case ToolArgumentsDelta(index, before), ToolArgumentsDelta(same, after) if index == same:
            met = ToolArgumentsDelta(index, before + after)
        case _:
            return first + second
    return (*first[:-1], met, *second[1:])


def joined_rounds(first: PublishedRound, second: PublishedRound) -> PublishedRound:
    """Return two adjacent rounds as one message: nothing is lost but the boundary."""
    return PublishedRound(
        tokens=first.tokens + second.tokens,
        sources=first.sources + second.sources,
        judged=first.judged + second.judged,
        accepted=first.accepted + second.accepted,
        events=joined_events(first.events, second.events),
        logprobs=first.logprobs + second.logprobs,
        prompt_logprobs=first.prompt_logprobs + second.prompt_logprobs,
    )


class Outbox:
    """Bounded messages of one request.

    `put` and `close` belong to the engine thread and never wait; `take`, `get`
    and `notify` belong to the event loop. When `capacity` rounds are unread, later
    ones are joined to the last, so that a reader who lags holds at most one
    request's tokens; one who leaves it full for longer than `patience` seconds
    is given up.
    """

    def __init__(self, capacity: int, patience: float, clock: Callable[[], float]) -> None:
        self._capacity = capacity
        self._patience = patience
        self._clock = clock
        self._lock = threading.Lock()
        self._rounds: deque[PublishedRound] = deque()
        self._last: Ended | Failed | None = None
        self._full_since: float | None = None
        self._ready = asyncio.Event()

    @property
    def is_closed(self) -> bool:
        """Whether the last message is in; it may still be unread."""
        return self._last is not None

    def put(self, published: PublishedRound) -> None:
        """Append a round whole.

        Raises:
            SlowConsumer: the reader stopped reading; nothing of the round was appended.
        """
        with self._lock:
            if len(self._rounds) < self._capacity:
                self._rounds.append(published)
                return
            self._require_patience()
            self._rounds[-1] = joined_rounds(self._rounds[-1], published)

    def _require_patience(self) -> None:
        now = self._clock()
        if self._full_since is None:
            self._full_since = now
        if now - self._full_since > self._patience:
            raise SlowConsumer(len(self._rounds))

    def close(self, last: Ended | Failed) -> None:
        """Append the last message; it always fits."""
        with self._lock:
            self._last = last

    def notify(self) -> None:
        """Wake the reader: something was appended before this call."""
        self._ready.set()

    async def get(self) -> Message:
        """Return the next message, waiting for one."""
        while (message := self.take()) is None:
            # An append is always followed by a notify on this very loop, so
            # none can slip in between the look and the clear.
            self._ready.clear()
            await self._ready.wait()
        return message

    def take(self) -> Message | None:
        """Return the next message if there is one; the last one again and again."""
        with self._lock:
            self._full_since = None
            return self._rounds.popleft() if self._rounds else self._last
