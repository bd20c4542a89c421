"""The answer to one request, step by step, in the order that the contract promises."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import replace
from typing import assert_never

from outrider.v1 import generation_pb2
from service.generation.events import Finished, SemanticEvent
from service.rpc.messages import finished_message, round_message
from service.runtime.request import Ended, Failed, Message
from service.speculation.publication import PublishedRound

Step = generation_pb2.Round | generation_pb2.Finished


async def steps(generation: AsyncIterable[Message]) -> AsyncIterator[Step]:
    """Yield each round, then the end.

    A round on the wire has tokens: the events of the end itself, and those of
    a publication without tokens, travel with the last step.

    Raises:
        OutriderError: the request failed; what was yielded stays valid.
    """
    held: tuple[SemanticEvent, ...] = ()
    async for message in generation:
        match message:
            case PublishedRound():
                published, late = _split_end(message)
                held += late
                if published.tokens:
                    yield round_message(published)
            case Ended():
                yield finished_message(message, held)
            case Failed(error):
                raise error
            case _:
                assert_never(message)


def _split_end(
    published: PublishedRound,
) -> tuple[PublishedRound, tuple[SemanticEvent, ...]]:
    """Return a round without the events that belong to the last step, and those."""
    events = published.events
    if not published.tokens:
        kept = 0
    elif events and isinstance(events[-1], Finished):
        kept = len(events) - 1
    else:
        kept = len(events)
    return replace(published, events=events[:kept]), events[kept:]
