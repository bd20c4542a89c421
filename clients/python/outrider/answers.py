"""The whole output of a request."""

from __future__ import annotations

from dataclasses import dataclass

from outrider.chats import Message, ToolCall
from outrider.events import (
    Admitted,
    Finished,
    FinishReason,
    Logprob,
    Token,
    admitted_event,
    finished_event,
    logprobs_of,
    tokens_of,
)
from outrider.v1 import generation_service_pb2, statistics_pb2


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request brought, whole.

    `tool_calls` are those that are complete; `prompt_logprobs` are those of the prompt's tokens
    from the second on, where asked for.
    """

    text: str
    reasoning: str
    tool_calls: tuple[ToolCall, ...]
    tokens: tuple[Token, ...]
    admitted: Admitted
    finished: Finished
    prompt_logprobs: tuple[Logprob, ...] = ()

    @property
    def message(self) -> Message:
        """Return the answer as the assistant's turn, to go on with the conversation."""
        return Message("assistant", self.text, self.reasoning or None, self.tool_calls)

    @property
    def reason(self) -> FinishReason:
        """Return why the output ended."""
        return self.finished.reason

    @property
    def statistics(self) -> statistics_pb2.RequestStatistics:
        """Return what speculation did for it."""
        return self.finished.statistics


def answer_of(response: generation_service_pb2.CompleteResponse) -> Answer:
    """Return a unary call's answer."""
    return Answer(
        text=response.text,
        reasoning=response.reasoning,
        tool_calls=tuple(
            ToolCall(call.id, call.name, call.arguments_json) for call in response.tool_calls
        ),
        tokens=tokens_of(response.tokens),
        admitted=admitted_event(response.admitted),
        finished=finished_event(response.finished),
        prompt_logprobs=logprobs_of(response.prompt_logprobs),
    )
