"""One streamed answer, as it came: what the contract promises of every stream is checked here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grpc import aio

from outrider.v1 import generation_pb2
from outrider.v1.generation_service_pb2 import StreamGenerateRequest
from tests.service.rpc.harness import Served, exhausted


@dataclass(frozen=True, slots=True)
class Streamed:
    """The messages of one stream, taken apart."""

    admitted: generation_pb2.Admitted
    rounds: Sequence[generation_pb2.Round]
    finished: generation_pb2.Finished

    @property
    def tokens(self) -> tuple[int, ...]:
        """Return every token."""
        return tuple(token for each in self.rounds for token in each.tokens.token_ids)

    @property
    def events(self) -> list[generation_pb2.SemanticEvent]:
        """Return every event, those of the end included."""
        return [*(e for each in self.rounds for e in each.events), *self.finished.events]

    @property
    def deltas(self) -> list[str]:
        """Return the pieces of the text."""
        return [e.text_delta for e in self.events if e.WhichOneof("event") == "text_delta"]

    @property
    def text(self) -> str:
        """Return the whole text."""
        return "".join(self.deltas)


async def streamed(server: Served, message: generation_pb2.Generation) -> Streamed:
    """Stream one answer; its first message admits it, and its last, and no other, ends it."""
    call = server.generation.StreamGenerate(StreamGenerateRequest(generation=message))
    first, *rounds, last = await exhausted(call)
    assert "admitted" == first.WhichOneof("event")
    assert {"round"} >= {each.WhichOneof("event") for each in rounds}
    assert "finished" == last.WhichOneof("event")
    return Streamed(first.admitted, [each.round for each in rounds], last.finished)


async def broken_off(
    server: Served, message: generation_pb2.Generation
) -> tuple[tuple[int, ...], aio.AioRpcError]:
    """Return the tokens of a stream that fails, and its error."""
    tokens: list[int] = []
    try:
        request = StreamGenerateRequest(generation=message)
        async for response in server.generation.StreamGenerate(request):
            tokens.extend(response.round.tokens.token_ids)
    except aio.AioRpcError as error:
        return tuple(tokens), error
    raise AssertionError("the stream did not fail")
