"""Timed streams: what a client sees of the server, and when."""

from __future__ import annotations

import time
from dataclasses import dataclass

from benchmarks.server import ServerProcess
from outrider.v1 import chat_pb2, generation_pb2, settings_pb2, statistics_pb2
from outrider.v1.generation_service_pb2 import StreamGenerateRequest
from outrider.v1.generation_service_pb2_grpc import GenerationServiceStub

PLAIN = settings_pb2.SPECULATION_MODE_NONE
SPECULATIVE = settings_pb2.SPECULATION_MODE_AUTO


@dataclass(frozen=True, slots=True)
class Wanted:
    """How an answer is asked for: greedily, one user turn, up to `max_tokens`."""

    max_tokens: int
    mode: settings_pb2.SpeculationMode.ValueType = PLAIN
    stop_on_eos: bool = True


@dataclass(frozen=True, slots=True)
class Answer:
    """The tokens of a stream; `seconds` is the whole call, `decoding` the part after the first."""

    tokens: tuple[int, ...]
    seconds: float
    decoding: float
    statistics: statistics_pb2.RequestStatistics


async def answer(server: ServerProcess, text: str, wanted: Wanted) -> Answer:
    """Stream one answer to its end.

    Raises:
        RuntimeError: the stream ended without saying so.
    """
    stub = GenerationServiceStub(server.channel)
    tokens: list[int] = []
    started = time.perf_counter()
    first = started
    async for response in stub.StreamGenerate(_request(text, wanted)):
        committed = response.round.tokens.token_ids
        if committed and not tokens:
            first = time.perf_counter()
        tokens.extend(committed)
        if response.HasField("finished"):
            ended = time.perf_counter()
            statistics = response.finished.statistics
            return Answer(tuple(tokens), ended - started, ended - first, statistics)
    raise RuntimeError("a stream ended without its finished message")


def _request(text: str, wanted: Wanted) -> StreamGenerateRequest:
    message = chat_pb2.ChatMessage(role="user", content=text)
    generation = generation_pb2.Generation(
        chat=chat_pb2.Chat(messages=[message]),
        settings=settings_pb2.GenerationSettings(
            temperature=0.0, max_new_tokens=wanted.max_tokens, stop_on_eos=wanted.stop_on_eos
        ),
        speculation=settings_pb2.SpeculationSettings(mode=wanted.mode),
    )
    return StreamGenerateRequest(generation=generation)
