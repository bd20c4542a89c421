"""The rounds of one request, gathered into what a unary call returns."""

from __future__ import annotations

from collections.abc import Iterable

from outrider.v1 import chat_pb2, generation_pb2, generation_service_pb2


class WholeOutput:
    """Gathers rounds; a tool call counts once it is complete."""

    def __init__(self) -> None:
        self._tokens = generation_pb2.CommittedTokens()
        self._prompt_logprobs = generation_pb2.PromptLogprobs()
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: dict[int, chat_pb2.ToolCall] = {}
        self._open_call: int | None = None
        self._complete: list[chat_pb2.ToolCall] = []

    def add(self, committed: generation_pb2.Round) -> None:
        """Append a round's tokens and what they let out."""
        self._tokens.token_ids.extend(committed.tokens.token_ids)
        self._tokens.sources.extend(committed.tokens.sources)
        self._tokens.logprobs.extend(committed.tokens.logprobs)
        self._tokens.alternatives.extend(committed.tokens.alternatives)
        self._prompt_logprobs.MergeFrom(committed.prompt_logprobs)
        self._add_events(committed.events)

    def response(
        self, admitted: generation_pb2.Admitted, finished: generation_pb2.Finished
    ) -> generation_service_pb2.CompleteResponse:
        """Return the whole answer, the events of the end included."""
        self._add_events(finished.events)
        return generation_service_pb2.CompleteResponse(
            admitted=admitted,
            text="".join(self._text),
            reasoning="".join(self._reasoning),
            tool_calls=self._complete,
            tokens=self._tokens,
            prompt_logprobs=self._prompt_logprobs if self._prompt_logprobs.logprobs else None,
            finished=finished,
        )

    def _add_events(self, events: Iterable[generation_pb2.SemanticEvent]) -> None:
        for event in events:
            match event.WhichOneof("event"):
                case "text_delta":
                    self._text.append(event.text_delta)
                case "reasoning_delta":
                    self._reasoning.append(event.reasoning_delta)
                case "tool_call_start":
                    self._start(event.tool_call_start)
                case "tool_arguments_delta":
                    delta = event.tool_arguments_delta
                    self._calls[delta.index].arguments_json += delta.json_fragment
                case "tool_call_end" if self._open_call is not None:
                    self._complete.append(self._calls[self._open_call])
                    self._open_call = None
                case _:
                    pass

    def _start(self, start: generation_pb2.ToolCallStart) -> None:
        self._calls[start.index] = chat_pb2.ToolCall(id=start.id, name=start.name)
        self._open_call = start.index
