"""What a client sees of one request, read from the messages on the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from outrider.v1.generation_pb2 import (
    Admitted,
    Alternatives,
    Finished,
    Round,
    SemanticEvent,
)
from service.errors import OutriderError
from service.rpc.answers import Step, steps
from service.runtime.request import Message
from service.speculation.contract import Tokens


@dataclass(frozen=True, slots=True)
class Scored:
    """A token's log-probability and its alternatives, as pairs of id and log-probability."""

    logprob: float
    alternatives: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """Everything that one request was answered with; `error` is how it failed."""

    admitted: Admitted
    rounds: tuple[Round, ...]
    finished: Finished | None
    error: OutriderError | None = None

    @property
    def tokens(self) -> Tokens:
        """Return the committed tokens."""
        return tuple(token for each in self.rounds for token in each.tokens.token_ids)

    @property
    def text(self) -> str:
        """Return the text of the answer, reasoning left out."""
        return "".join(event.text_delta for event in self._events())

    @property
    def ended(self) -> Finished:
        """Return the end.

        Raises:
            OutriderError: the request failed instead.
        """
        if self.finished is None:
            raise self.error or AssertionError("a request ends or fails")
        return self.finished

    @property
    def checked(self) -> Answer:
        """Return this answer.

        Raises:
            OutriderError: the request failed.
        """
        if self.error is not None:
            raise self.error
        return self

    @property
    def end(self) -> tuple[int, str]:
        """Return why it ended, and which stop matched, if one did."""
        return self.ended.reason, str(self.ended.matched_stop)

    @property
    def events(self) -> tuple[tuple[str, str], ...]:
        """Return each event's kind and content, neighbouring pieces of one kind joined."""
        runs = groupby(self._events(), key=lambda event: event.WhichOneof("event") or "")
        return tuple((kind, "".join(map(_content, run))) for kind, run in runs)

    @property
    def logprobs(self) -> tuple[Scored, ...]:
        """Return what was said of each committed token, nothing where nothing was asked."""
        runs = (_scored(each.tokens.logprobs, each.tokens.alternatives) for each in self.rounds)
        return tuple(scored for run in runs for scored in run)

    @property
    def prompt_logprobs(self) -> tuple[Scored, ...]:
        """Return the same for the tokens of the prompt from the second on."""
        runs = (
            _scored(each.prompt_logprobs.logprobs, each.prompt_logprobs.alternatives)
            for each in self.rounds
        )
        return tuple(scored for run in runs for scored in run)

    def _events(self) -> Iterator[SemanticEvent]:
        for each in self.rounds:
            yield from each.events
        if self.finished is not None:
            yield from self.finished.events


def read_answer(admitted: Admitted, messages: Iterable[Message]) -> Answer:
    """Return what a client is told by these messages, put on the wire as the server does."""
    told, error = _steps(messages)
    rounds = tuple(step for step in told if isinstance(step, Round))
    finished = next((step for step in told if isinstance(step, Finished)), None)
    return Answer(admitted, rounds, finished, error)


def _steps(messages: Iterable[Message]) -> tuple[list[Step], OutriderError | None]:
    """Return the steps of an answer that is complete, so that none has to be waited for."""
    told: list[Step] = []

    async def each() -> AsyncIterator[Message]:
        for message in messages:
            yield message

    async def read() -> OutriderError | None:
        try:
            async for step in steps(each()):
                told.append(step)  # noqa: PERF401 - what came before a failure counts
        except OutriderError as error:
            return error
        return None

    try:
        read().send(None)
    except StopIteration as end:
        return told, end.value
    raise AssertionError("nothing of a complete answer is waited for")


def _scored(logprobs: Sequence[float], alternatives: Sequence[Alternatives]) -> Iterator[Scored]:
    for index, logprob in enumerate(logprobs):
        beside = alternatives[index] if alternatives else Alternatives()
        yield Scored(logprob, tuple(zip(beside.token_ids, beside.logprobs, strict=True)))


def _content(event: SemanticEvent) -> str:
    """Return what an event says; the ids of calls are made up for each request."""
    match event.WhichOneof("event"):
        case "reasoning_delta" | "text_delta" as kind:
            return str(getattr(event, kind))
        case "tool_call_start":
            return f"{event.tool_call_start.index} {event.tool_call_start.name}"
        case "tool_arguments_delta":
            return event.tool_arguments_delta.json_fragment
        case "finished":
            return str(event.finished.reason)
        case _:
            return ""
