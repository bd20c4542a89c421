"""What a generation brings, in order: its admission, rounds and their text, its end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from outrider.v1 import generation_pb2, settings_pb2, statistics_pb2


class _Open(IntEnum):
    """An enum of the contract; a value of a newer server reads as unspecified."""

    def __str__(self) -> str:
        return self.name

    def __format__(self, form: str) -> str:
        return format(self.name, form)

    @classmethod
    def _missing_(cls, value: object) -> _Open | None:
        return cls(0) if value else None


class FinishReason(_Open):
    """Why an output ended."""

    UNSPECIFIED = 0
    EOS = generation_pb2.FINISH_REASON_EOS
    STOP_SEQUENCE = generation_pb2.FINISH_REASON_STOP_SEQUENCE
    GRAMMAR_COMPLETE = generation_pb2.FINISH_REASON_GRAMMAR_COMPLETE
    MAX_TOKENS = generation_pb2.FINISH_REASON_MAX_TOKENS
    CONTEXT_LENGTH = generation_pb2.FINISH_REASON_CONTEXT_LENGTH
    CANCELLED = generation_pb2.FINISH_REASON_CANCELLED


class TokenSource(_Open):
    """Where a token comes from."""

    UNSPECIFIED = 0
    PREFILL = generation_pb2.TOKEN_SOURCE_PREFILL
    ACCEPTED = generation_pb2.TOKEN_SOURCE_ACCEPTED
    REPLACEMENT = generation_pb2.TOKEN_SOURCE_REPLACEMENT
    BONUS = generation_pb2.TOKEN_SOURCE_BONUS
    PLAIN = generation_pb2.TOKEN_SOURCE_PLAIN


@dataclass(frozen=True, slots=True)
class Alternative:
    """One of the likeliest tokens at a place, and the natural logarithm of its probability."""

    id: int
    logprob: float


@dataclass(frozen=True, slots=True)
class Logprob:
    """How likely a token was, as a natural logarithm, and the likeliest in its place."""

    logprob: float
    alternatives: tuple[Alternative, ...] = ()


@dataclass(frozen=True, slots=True)
class Token:
    """One token of the output, and where it comes from.

    `logprob` is None where log-probabilities were not asked for. `alternatives` come likeliest
    first, the token itself among them.
    """

    id: int
    source: TokenSource
    logprob: float | None = None
    alternatives: tuple[Alternative, ...] = ()


@dataclass(frozen=True, slots=True)
class Admitted:
    """The request was accepted: the first event. `settings` are what it resolved to."""

    request_id: str
    model: str
    prompt_tokens: int
    settings: settings_pb2.GenerationSettings
    speculation: generation_pb2.ResolvedSpeculation

    @property
    def seed(self) -> int:
        """Return where the request's randomness starts."""
        return self.settings.seed


@dataclass(frozen=True, slots=True)
class Round:
    """What one pass committed: `accepted` of `judged` proposals, and the target's own tokens.

    `prompt_logprobs` come once, with the first token, where they were asked for: those of the
    prompt's tokens from the second on.
    """

    first_position: int
    tokens: tuple[Token, ...]
    judged: int
    accepted: int
    prompt_logprobs: tuple[Logprob, ...] = ()


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text of the answer; never cut inside a character."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """More reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallStart:
    """A tool call began."""

    index: int
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ToolArgumentsDelta:
    """More of a tool call's JSON arguments."""

    index: int
    json_fragment: str


@dataclass(frozen=True, slots=True)
class ToolCallEnd:
    """The tool call that was running is complete."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The output ended: the last event. `matched_stop` is the stop that ended it, if one did.

    `reasoning_tokens` are those of `completion_tokens` that were part of the reasoning.
    """

    reason: FinishReason
    matched_stop: str | int | None
    prompt_tokens: int
    completion_tokens: int
    statistics: statistics_pb2.RequestStatistics
    reasoning_tokens: int = 0


Delta = TextDelta | ReasoningDelta | ToolCallStart | ToolArgumentsDelta | ToolCallEnd
Event = Admitted | Round | Delta | Finished


def admitted_event(message: generation_pb2.Admitted) -> Admitted:
    """Return an admission."""
    return Admitted(
        message.request_id,
        message.model,
        message.prompt_tokens,
        message.settings,
        message.speculation,
    )


def round_events(message: generation_pb2.Round) -> Iterator[Event]:
    """Yield a round, then what it let out."""
    tokens = tokens_of(message.tokens)
    first = message.tokens.first_position
    prompt = logprobs_of(message.prompt_logprobs)
    yield Round(first, tokens, message.judged_tokens, message.accepted_tokens, prompt)
    yield from deltas(message.events)


def finished_events(message: generation_pb2.Finished) -> Iterator[Event]:
    """Yield what the end let out, then the end."""
    yield from deltas(message.events)
    yield finished_event(message)


def finished_event(message: generation_pb2.Finished) -> Finished:
    """Return an end."""
    return Finished(
        FinishReason(message.reason),
        _matched_stop(message.matched_stop),
        message.usage.prompt_tokens,
        message.usage.completion_tokens,
        message.statistics,
        message.usage.reasoning_tokens,
    )


def tokens_of(message: generation_pb2.CommittedTokens) -> tuple[Token, ...]:
    """Return a run of tokens."""
    pairs = list(zip(message.token_ids, message.sources, strict=True))
    scores = logprobs_of(message)
    if not scores:
        return tuple(Token(token, TokenSource(source)) for token, source in pairs)
    return tuple(
        Token(token, TokenSource(source), score.logprob, score.alternatives)
        for (token, source), score in zip(pairs, scores, strict=True)
    )


def logprobs_of(
    message: generation_pb2.CommittedTokens | generation_pb2.PromptLogprobs,
) -> tuple[Logprob, ...]:
    """Return log-probabilities with their alternatives, both empty where none were asked for."""
    listed = list(map(_alternatives, message.alternatives)) or [()] * len(message.logprobs)
    return tuple(map(Logprob, message.logprobs, listed))


def _alternatives(message: generation_pb2.Alternatives) -> tuple[Alternative, ...]:
    return tuple(map(Alternative, message.token_ids, message.logprobs))


def deltas(messages: Iterable[generation_pb2.SemanticEvent]) -> Iterator[Delta]:
    """Yield what an output let out; kinds that only a newer server knows are passed over."""
    for message in messages:
        match message.WhichOneof("event"):
            case "text_delta":
                yield TextDelta(message.text_delta)
            case "reasoning_delta":
                yield ReasoningDelta(message.reasoning_delta)
            case "tool_call_start":
                start = message.tool_call_start
                yield ToolCallStart(start.index, start.id, start.name)
            case "tool_arguments_delta":
                delta = message.tool_arguments_delta
                yield ToolArgumentsDelta(delta.index, delta.json_fragment)
            case "tool_call_end":
                yield ToolCallEnd()
            case _:
                pass


def _matched_stop(message: generation_pb2.MatchedStop) -> str | int | None:
    match message.WhichOneof("stop"):
        case "text":
            return message.text
        case "token_id":
            return message.token_id
        case _:
            return None
