"""Requests as clients write them, and their whole answers: over gRPC, or on the test's thread."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from itertools import islice
from typing import Any, TypeVar

from outrider.v1 import chat_pb2, generation_pb2, settings_pb2
from outrider.v1.generation_service_pb2 import CompleteResponse
from service.errors import OutriderError
from service.rpc.answers import steps
from service.rpc.messages import admitted_message
from service.rpc.requests import generation_request
from service.rpc.validation import validate
from service.rpc.whole_output import WholeOutput
from service.runtime.models import LoadedModel
from service.runtime.request import GenerationRequest, Message
from service.runtime.ticket import Ticket
from tests.service.runtime.doubles import DrivenEngine, drained

NONE = settings_pb2.SPECULATION_MODE_NONE
LOOKUP = settings_pb2.SPECULATION_MODE_PROMPT_LOOKUP
DRAFT = settings_pb2.SPECULATION_MODE_DRAFT_MODEL

EOS = generation_pb2.FINISH_REASON_EOS
STOP = generation_pb2.FINISH_REASON_STOP_SEQUENCE
LENGTH = generation_pb2.FINISH_REASON_MAX_TOKENS
CONTEXT = generation_pb2.FINISH_REASON_CONTEXT_LENGTH
GRAMMAR = generation_pb2.FINISH_REASON_GRAMMAR_COMPLETE

Answer = CompleteResponse
T = TypeVar("T")
TOGETHER = 16


def speculation(
    proposer: str | int | None = None, width: int | None = None
) -> settings_pb2.SpeculationSettings:
    """Return what asks for a proposer, by its name or its mode, and a width."""
    wanted = settings_pb2.SpeculationSettings()
    if isinstance(proposer, str):
        wanted.proposer = proposer
    elif proposer is not None:
        wanted.mode = proposer
    if width is not None:
        wanted.num_speculative_tokens = width
    return wanted


def asked(
    prompt: str | Sequence[int],
    proposer: str | int | None = None,
    width: int | None = None,
    **settings: object,
) -> generation_pb2.Generation:
    """Return a request: its prompt as text or tokens, its proposer, its settings."""
    message = generation_pb2.Generation(
        settings=settings_pb2.GenerationSettings(**settings),
        speculation=speculation(proposer, width),
    )
    if isinstance(prompt, str):
        message.text = prompt
    else:
        message.token_ids.ids.extend(prompt)
    return message


def told(
    text: str,
    dialect: str,
    proposer: str | int | None = None,
    width: int | None = None,
    **settings: object,
) -> generation_pb2.Generation:
    """Return the request of a conversation of one turn, whose reply is read in a dialect."""
    message = asked("", proposer, width, **settings)
    turn = chat_pb2.ChatMessage(role="user", content=text)
    message.chat.CopyFrom(chat_pb2.Chat(messages=[turn], dialect=dialect))
    return message


def stop_at(*stops: str | int) -> list[settings_pb2.Stop]:
    """Return stops, texts or token ids."""
    return [
        settings_pb2.Stop(text=stop) if isinstance(stop, str) else settings_pb2.Stop(token_id=stop)
        for stop in stops
    ]


def tried(
    model: LoadedModel, messages: Iterable[generation_pb2.Generation]
) -> list[Answer | OutriderError]:
    """Answer requests on the test's own thread, some together: all of the service but gRPC.

    One that is refused or fails has its error in place of an answer.
    """
    engine = DrivenEngine(model, max_queued=TOGETHER, capacity=10_000)
    outcomes: list[Answer | OutriderError] = []
    waiting = enumerate(messages)
    while batch := [*islice(waiting, TOGETHER)]:
        submitted = [_submitted(engine, message, str(place)) for place, message in batch]
        engine.run(limit=100_000)
        outcomes += [_outcome(each) for each in submitted]
    return outcomes


def played(model: LoadedModel, messages: Iterable[generation_pb2.Generation]) -> list[Answer]:
    """Answer requests as `tried` does; none of them fails."""
    answers = []
    for outcome in tried(model, messages):
        if isinstance(outcome, OutriderError):
            raise outcome
        answers.append(outcome)
    return answers


def one(model: LoadedModel, message: generation_pb2.Generation) -> Answer:
    """Answer one request on the test's own thread."""
    (answer,) = played(model, [message])
    return answer


Submitted = tuple[GenerationRequest, Ticket]


def _submitted(
    engine: DrivenEngine, message: generation_pb2.Generation, request_id: str
) -> Submitted | OutriderError:
    try:
        request = _portable(message, request_id)
        return request, engine.submit(request)
    except OutriderError as refused:
        return refused


def _outcome(submitted: Submitted | OutriderError) -> Answer | OutriderError:
    if isinstance(submitted, OutriderError):
        return submitted
    try:
        return _at_once(_answer(*submitted))
    except OutriderError as failed:
        return failed


def _portable(message: generation_pb2.Generation, request_id: str) -> GenerationRequest:
    validate(message)
    return generation_request(message, request_id=request_id, caller="case", time_remaining=None)


def _at_once(work: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine that never waits returns."""
    try:
        work.send(None)
    except StopIteration as ended:
        result: T = ended.value
        return result
    raise AssertionError("it waits")


async def _answer(request: GenerationRequest, ticket: Ticket) -> Answer:
    output = WholeOutput()
    async for step in steps(_replayed(drained(ticket))):
        if isinstance(step, generation_pb2.Finished):
            admitted = admitted_message(ticket.prepared.admitted, request)
            return output.response(admitted, step)
        output.add(step)
    raise AssertionError("an answer ends with its last step")


async def _replayed(messages: Iterable[Message]) -> AsyncIterator[Message]:
    for message in messages:
        yield message


def tokens_of(answer: Answer) -> tuple[int, ...]:
    """Return the tokens of an answer."""
    return tuple(answer.tokens.token_ids)


def output_of(answer: Answer) -> tuple[tuple[int, ...], str, int]:
    """Return what speculation must not change: tokens, text, and why it ended."""
    return tokens_of(answer), answer.text, answer.finished.reason
