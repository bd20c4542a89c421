"""Text state that is forked for a round, and the one place where output becomes visible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from service.generation.cancellation import CancellationToken
from service.generation.events import Finished, SemanticEvent
from service.generation.finish import FinishReason, MatchedStop
from service.generation.sequence import TokenCommit
from service.speculation.contract import TokenLogprob
from service.speculation.round import TokenSource


class TextState(Protocol):
    """Decoded text, stops and parsers of one output; forked, then installed or dropped."""

    @property
    def reasoning_tokens(self) -> int:
        """Return how many of the tokens were part of the reasoning."""

    def fork(self) -> TextState:
        """Return an independent copy with no staged events; cheap, never a replay."""

    def push_token(self, token: int) -> MatchedStop | None:
        """Stage one token and return the stop that it completed, if any."""

    def finish(self, reason: FinishReason) -> None:
        """Stage the normal end: flush what is held back, then the finished event."""

    def cancel(self) -> None:
        """Stage the cancelled end: what is held back is dropped."""

    def take_events(self) -> tuple[SemanticEvent, ...]:
        """Drain the staged events, in order."""


@dataclass(slots=True)
class TokensOnly:
    """A text state for token-only output: no text, no stops, only the end."""

    ended: FinishReason | None = None

    @property
    def reasoning_tokens(self) -> int:
        """Return zero: nothing is read."""
        return 0

    def fork(self) -> TokensOnly:
        """Return a copy; there is nothing staged to leave behind."""
        return TokensOnly()

    def push_token(self, token: int) -> MatchedStop | None:
        """Match nothing."""
        del token
        return None

    def finish(self, reason: FinishReason) -> None:
        """Stage the finished event."""
        self.ended = reason

    def cancel(self) -> None:
        """Stage the cancelled event."""
        self.ended = FinishReason.CANCELLED

    def take_events(self) -> tuple[SemanticEvent, ...]:
        """Drain the finished event, if staged."""
        ended, self.ended = self.ended, None
        return () if ended is None else (Finished(ended),)


@dataclass(frozen=True, slots=True)
class PublishedRound:
    """What one publication delivers: committed tokens with their sources, and events.

    `accepted` of `judged` proposals were kept. A cancellation delivers no tokens. `logprobs` runs
    in parallel to `tokens` where the request wants any; `prompt_logprobs` comes once, for the
    prompt's tokens from the second on.
    """

    tokens: tuple[TokenCommit, ...]
    sources: tuple[TokenSource, ...]
    judged: int
    accepted: int
    events: tuple[SemanticEvent, ...]
    logprobs: tuple[TokenLogprob, ...] = ()
    prompt_logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class RoundTokens:
    """The committed part of a round, before its events are drained."""

    tokens: tuple[TokenCommit, ...]
    sources: tuple[TokenSource, ...]
    judged: int = 0
    accepted: int = 0
    logprobs: tuple[TokenLogprob, ...] = ()
    prompt_logprobs: tuple[TokenLogprob, ...] = ()

    def with_events(self, events: tuple[SemanticEvent, ...]) -> PublishedRound:
        """Return the round as it is delivered."""
        return PublishedRound(
            tokens=self.tokens,
            sources=self.sources,
            judged=self.judged,
            accepted=self.accepted,
            events=events,
            logprobs=self.logprobs,
            prompt_logprobs=self.prompt_logprobs,
        )


class Publisher(Protocol):
    """Makes committed output visible; each call is one atomic boundary."""

    def publish_committed(
        self,
        text: TextState,
        committed: RoundTokens,
        cancellation: CancellationToken,
        *,
        finished: bool,
    ) -> bool:
        """Deliver a round and its staged events; return whether cancellation won.

        Raises:
            PublicationError: nothing of the round was delivered.
        """

    def publish_cancelled(self, text: TextState) -> None:
        """Deliver the cancelled end."""


@dataclass(frozen=True, slots=True)
class CallbackPublisher:
    """Publishes through one callback, which delivers a round whole or raises."""

    deliver: Callable[[PublishedRound], None]

    def publish_committed(
        self,
        text: TextState,
        committed: RoundTokens,
        cancellation: CancellationToken,
        *,
        finished: bool,
    ) -> bool:
        """Deliver a round; a cancel seen before or during it still delivers that round."""
        cancelled = cancellation.is_cancelled and not finished
        if cancelled:
            text.cancel()
        self.deliver(committed.with_events(text.take_events()))
        if not cancelled and not finished and cancellation.is_cancelled:
            self.publish_cancelled(text)
            return True
        return cancelled

    def publish_cancelled(self, text: TextState) -> None:
        """Deliver the cancelled end, with no tokens."""
        text.cancel()
        self.deliver(RoundTokens((), ()).with_events(text.take_events()))
