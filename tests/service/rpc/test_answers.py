from collections.abc import AsyncIterator

import pytest

from outrider.v1 import chat_pb2, generation_pb2
from service.errors import EngineError
from service.generation.events import Finished, SemanticEvent, TextDelta
from service.generation.finish import FinishReason
from service.generation.sequence import TokenCommit
from service.rpc.answers import Step, steps
from service.rpc.messages import event_message
from service.rpc.whole_output import WholeOutput
from service.runtime.request import Ended, Failed, Message
from service.speculation.publication import PublishedRound
from service.speculation.round import TokenSource
from service.speculation.statistics import SequenceStatistics

pytestmark = pytest.mark.asyncio

CANCELLED = Finished(FinishReason.CANCELLED)


def published(*events: SemanticEvent, tokens: int = 1) -> PublishedRound:
    commits = tuple(TokenCommit(7, position, None) for position in range(tokens))
    sources = (TokenSource.PLAIN,) * tokens
    return PublishedRound(commits, sources, 0, 0, events)


def ended(reason: FinishReason) -> Ended:
    return Ended(reason, None, 1, 1, SequenceStatistics())


async def scripted(*messages: Message) -> AsyncIterator[Message]:
    for message in messages:
        yield message


async def played(*messages: Message) -> list[Step]:
    return [step async for step in steps(scripted(*messages))]


def events_of(step: Step) -> list[str | None]:
    return [event.WhichOneof("event") for event in step.events]


async def test_finished_event_travels_with_the_end():
    end = Finished(FinishReason.EOS)
    first, last = await played(published(TextDelta("a"), end), ended(FinishReason.EOS))
    assert (["text_delta"], ["finished"]) == (events_of(first), events_of(last))


async def test_publication_without_tokens_is_no_round():
    """Only a cancelled end has none: its events belong to the last step."""
    steps_ = await played(
        published(TextDelta("a")), published(CANCELLED, tokens=0), ended(FinishReason.CANCELLED)
    )
    assert [generation_pb2.Round, generation_pb2.Finished] == [type(step) for step in steps_]
    assert [event_message(CANCELLED)] == list(steps_[1].events)


async def test_cancelled_end_joined_to_a_round_is_split_off_again():
    first, last = await played(published(TextDelta("a"), CANCELLED), ended(FinishReason.CANCELLED))
    assert (["text_delta"], ["finished"]) == (events_of(first), events_of(last))


async def test_failure_is_raised_after_what_was_delivered():
    answer = steps(scripted(published(), Failed(EngineError("x"), None)))
    assert isinstance(await anext(answer), generation_pb2.Round)
    with pytest.raises(EngineError):
        await anext(answer)


def round_of(*events: generation_pb2.SemanticEvent) -> generation_pb2.Round:
    return generation_pb2.Round(events=events)


async def test_whole_output_joins_text_reasoning_and_complete_calls():
    """A call that never ends is not a call."""
    Event = generation_pb2.SemanticEvent  # noqa: N806 - a type
    start, arguments = generation_pb2.ToolCallStart, generation_pb2.ToolArgumentsDelta
    output = WholeOutput()
    output.add(round_of(Event(reasoning_delta="hm"), Event(text_delta="so")))
    output.add(
        round_of(
            Event(tool_call_start=start(index=0, id="a", name="f")),
            Event(tool_arguments_delta=arguments(index=0, json_fragment='{"x"')),
            Event(tool_arguments_delta=arguments(index=0, json_fragment=":1}")),
            Event(tool_call_end=generation_pb2.ToolCallEnd()),
            Event(tool_call_start=start(index=1, id="b", name="g")),
        )
    )
    finished = generation_pb2.Finished(events=[Event(text_delta="."), Event(text_delta="!")])
    response = output.response(generation_pb2.Admitted(), finished)
    assert ("so.!", "hm") == (response.text, response.reasoning)
    expected = [chat_pb2.ToolCall(id="a", name="f", arguments_json='{"x":1}')]
    assert expected == list(response.tool_calls)


async def test_end_without_a_call_ends_none_again():
    Event = generation_pb2.SemanticEvent  # noqa: N806 - a type
    start, end = generation_pb2.ToolCallStart(name="f"), generation_pb2.ToolCallEnd()
    output = WholeOutput()
    output.add(
        round_of(Event(tool_call_start=start), Event(tool_call_end=end), Event(tool_call_end=end))
    )
    response = output.response(generation_pb2.Admitted(), generation_pb2.Finished())
    assert 1 == len(response.tool_calls)
