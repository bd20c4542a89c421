"""The committed tokens of one output, and which terminal condition wins."""

from __future__ import annotations

from dataclasses import dataclass, replace

from service.errors import AlreadyFinished
from service.generation.cancellation import CancellationToken
from service.generation.finish import FinishReason, MatchedStop

_TOKEN_BYTES = 4
_BASE_BYTES = 64


@dataclass(frozen=True, slots=True)
class TerminalSignals:
    """What was observed while one token was committed."""

    stop: MatchedStop | None = None
    grammar_complete: bool = False


NO_SIGNALS = TerminalSignals()


@dataclass(frozen=True, slots=True)
class TokenCommit:
    """One committed token: its id, zero-based position, and the reason it ended on."""

    token_id: int
    position: int
    finish_reason: FinishReason | None


@dataclass(frozen=True, slots=True)
class GenerationSequence:
    """Committed tokens with a budget; every change is a new value.

    `max_tokens` is the output budget and `context_room` how many tokens the
    window leaves after the prompt. Whichever binds ends the sequence; the
    budget, if both do.
    """

    max_tokens: int
    eos_token_ids: frozenset[int] = frozenset()
    context_room: int | None = None
    tokens: tuple[int, ...] = ()
    finish_reason: FinishReason | None = None
    matched_stop: MatchedStop | None = None

    def __post_init__(self) -> None:
        """Finish at once when there is no budget at all."""
        if self.max_tokens == 0 and self.finish_reason is None:
            object.__setattr__(self, "finish_reason", FinishReason.MAX_TOKENS)

    @property
    def limit(self) -> int:
        """Return how many tokens the sequence can hold."""
        if self.context_room is None:
            return self.max_tokens
        return min(self.max_tokens, self.context_room)

    @property
    def remaining(self) -> int:
        """Return how many more tokens fit."""
        return max(0, self.limit - len(self.tokens))

    @property
    def is_finished(self) -> bool:
        """Whether no further token may be committed."""
        return self.finish_reason is not None

    def commit(
        self, token_id: int, signals: TerminalSignals = NO_SIGNALS
    ) -> tuple[GenerationSequence, TokenCommit]:
        """Append one token and apply the precedence stop, grammar, EOS, budget or window.

        Raises:
            AlreadyFinished: the sequence has ended; it is unchanged.
        """
        if self.is_finished:
            raise AlreadyFinished
        tokens = (*self.tokens, token_id)
        reason = self._reason(token_id, len(tokens), signals)
        sequence = replace(self, tokens=tokens, finish_reason=reason, matched_stop=signals.stop)
        return sequence, TokenCommit(token_id, len(self.tokens), reason)

    def _reason(self, token_id: int, length: int, signals: TerminalSignals) -> FinishReason | None:
        if signals.stop is not None:
            return FinishReason.STOP_SEQUENCE
        if signals.grammar_complete:
            return FinishReason.GRAMMAR_COMPLETE
        if token_id in self.eos_token_ids:
            return FinishReason.EOS
        if length >= self.max_tokens:
            return FinishReason.MAX_TOKENS
        if self.context_room is not None and length >= self.context_room:
            return FinishReason.CONTEXT_LENGTH
        return None

    def cancel(self) -> GenerationSequence:
        """Return the cancelled sequence, or this one if it ended otherwise.

        A sequence that never had a budget still counts as cancellable.
        """
        untouched = not self.tokens and self.finish_reason is FinishReason.MAX_TOKENS
        if self.is_finished and not untouched:
            return self
        return replace(self, finish_reason=FinishReason.CANCELLED)

    def observe_cancellation(self, cancellation: CancellationToken) -> GenerationSequence:
        """Apply a cooperative cancellation at a submission boundary."""
        return self.cancel() if cancellation.is_cancelled else self

    @property
    def snapshot_storage_bytes(self) -> int:
        """Return the logical bytes of a copy, EOS policy included, overhead excluded."""
        return _BASE_BYTES + _TOKEN_BYTES * (len(self.eos_token_ids) + len(self.tokens))
