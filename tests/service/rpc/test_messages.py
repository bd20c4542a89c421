from typing import get_args

import pytest

from outrider.v1 import capability_pb2, generation_pb2
from service.generation import events
from service.generation.finish import FinishReason
from service.generation.sequence import TokenCommit
from service.rpc.messages import capability_message, event_message, finished_message, round_message
from service.rpc.whole_output import WholeOutput
from service.runtime.outbox import joined_rounds
from service.runtime.request import Ended
from service.speculation.capability import (
    Declared,
    DraftSource,
    Ready,
    SpeculativeCapability,
    Unavailable,
    Unsupported,
)
from service.speculation.contract import TokenLogprob
from service.speculation.publication import PublishedRound
from service.speculation.round import TokenSource
from service.speculation.statistics import SequenceStatistics

Event = generation_pb2.SemanticEvent
Capability = capability_pb2.SpeculativeCapability

EVENTS = (
    (events.TextDelta("a"), Event(text_delta="a")),
    (events.ReasoningDelta("b"), Event(reasoning_delta="b")),
    (
        events.ToolCallStart(1, "c", "f"),
        Event(tool_call_start=generation_pb2.ToolCallStart(index=1, id="c", name="f")),
    ),
    (
        events.ToolArgumentsDelta(1, "{"),
        Event(tool_arguments_delta=generation_pb2.ToolArgumentsDelta(index=1, json_fragment="{")),
    ),
    (events.ToolCallEnd(), Event(tool_call_end=generation_pb2.ToolCallEnd())),
    (
        events.Finished(FinishReason.EOS),
        Event(finished=generation_pb2.OutputFinished(reason=generation_pb2.FINISH_REASON_EOS)),
    ),
)
SEPARATE = capability_pb2.DRAFT_SOURCE_SEPARATE
CAPABILITIES = (
    (Unavailable(), Capability(unavailable=Capability.Unavailable())),
    (
        Declared(DraftSource.SEPARATE),
        Capability(declared=Capability.Declared(source=SEPARATE)),
    ),
    (Ready(DraftSource.SEPARATE), Capability(ready=Capability.Ready(source=SEPARATE))),
    (
        Unsupported(DraftSource.SEPARATE, "mamba"),
        Capability(unsupported=Capability.Unsupported(source=SEPARATE, architecture="mamba")),
    ),
)


@pytest.mark.parametrize(("event", "expected"), EVENTS)
def test_event_has_its_message(event: events.SemanticEvent, expected: Event):
    assert expected == event_message(event)


@pytest.mark.parametrize(("capability", "expected"), CAPABILITIES)
def test_capability_has_its_message(capability: SpeculativeCapability, expected: Capability):
    assert expected == capability_message(capability)


def test_every_variant_has_a_case():
    assert set(get_args(events.SemanticEvent)) == {type(event) for event, _ in EVENTS}
    assert set(get_args(SpeculativeCapability)) == {type(state) for state, _ in CAPABILITIES}


def scored(*logprobs: TokenLogprob, first: int = 0, prompt: tuple = ()) -> PublishedRound:
    """Return a round of as many tokens, published from position `first` on."""
    places = range(first, first + len(logprobs))
    return PublishedRound(
        tokens=tuple(TokenCommit(40 + place, place, None) for place in places),
        sources=(TokenSource.PLAIN,) * len(logprobs),
        judged=0,
        accepted=0,
        events=(),
        logprobs=logprobs,
        prompt_logprobs=prompt,
    )


LIKELY = TokenLogprob(-0.25, ((5, -0.25), (6, -2.0)))
UNLIKELY = TokenLogprob(-3.5, ((7, -0.125), (8, -3.5)))


def listed(message: generation_pb2.Alternatives) -> list[tuple[int, float]]:
    return list(zip(message.token_ids, message.logprobs, strict=True))


def test_log_probabilities_run_beside_their_tokens():
    tokens = round_message(scored(LIKELY, UNLIKELY)).tokens
    assert [-0.25, -3.5] == list(tokens.logprobs)
    assert [[*LIKELY.alternatives], [*UNLIKELY.alternatives]] == [
        listed(each) for each in tokens.alternatives
    ]


def test_log_probabilities_without_alternatives_have_no_empty_ones():
    tokens = round_message(scored(TokenLogprob(-1.0), TokenLogprob(-2.0))).tokens
    assert ([-1.0, -2.0], 0) == (list(tokens.logprobs), len(tokens.alternatives))


def test_log_probabilities_of_the_prompt_are_their_own_message():
    message = round_message(scored(LIKELY, prompt=(UNLIKELY, LIKELY)))
    assert [-3.5, -0.25] == list(message.prompt_logprobs.logprobs)
    assert [*UNLIKELY.alternatives] == listed(message.prompt_logprobs.alternatives[0])
    assert not round_message(scored(LIKELY)).HasField("prompt_logprobs")


def test_round_without_log_probabilities_has_none():
    plain = PublishedRound((TokenCommit(4, 0, None),), (TokenSource.PREFILL,), 0, 0, ())
    message = round_message(plain)
    assert (0, 0) == (len(message.tokens.logprobs), len(message.tokens.alternatives))
    assert not message.HasField("prompt_logprobs")


def test_rounds_joined_for_a_slow_reader_keep_their_places():
    """Each token's values stay beside it, from the first position on."""
    rounds = (
        scored(LIKELY, first=3, prompt=(UNLIKELY,)),
        scored(UNLIKELY, LIKELY, first=4),
    )
    joined = round_message(joined_rounds(*rounds))
    apart = [round_message(each).tokens for each in rounds]
    assert 3 == joined.tokens.first_position
    for name in ("token_ids", "logprobs", "alternatives", "sources"):
        assert [value for each in apart for value in getattr(each, name)] == list(
            getattr(joined.tokens, name)
        )
    assert 1 == len(joined.prompt_logprobs.logprobs)


def test_whole_output_holds_the_same_as_its_rounds():
    output = WholeOutput()
    rounds = [scored(LIKELY, prompt=(UNLIKELY,)), scored(UNLIKELY, LIKELY, first=1)]
    for each in rounds:
        output.add(round_message(each))
    whole = output.response(generation_pb2.Admitted(), generation_pb2.Finished())
    joined = round_message(joined_rounds(*rounds))
    assert (joined.tokens, joined.prompt_logprobs) == (whole.tokens, whole.prompt_logprobs)


@pytest.mark.parametrize("alternatives", [0, 1, 2, 20])
def test_listed_log_probability_takes_few_bytes(alternatives: int):
    """What the bound on a request's log-probabilities rests on; ids of vocabularies up to 2**21."""
    largest = 2**21 - 1
    likeliest = tuple((largest - place, -1.0 - place) for place in range(alternatives))
    count = 500
    committed = PublishedRound(
        tokens=tuple(TokenCommit(largest, place, None) for place in range(count)),
        sources=(TokenSource.PLAIN,) * count,
        judged=0,
        accepted=0,
        events=(),
        logprobs=(TokenLogprob(-1.0, likeliest),) * count,
    )
    listed = count * (1 + alternatives)
    assert 11 * listed >= round_message(committed).ByteSize()


def test_reasoning_tokens_are_part_of_the_usage():
    ended = Ended(FinishReason.EOS, None, 3, 9, SequenceStatistics(), reasoning_tokens=4)
    expected = generation_pb2.Usage(prompt_tokens=3, completion_tokens=9, reasoning_tokens=4)
    assert expected == finished_message(ended, ()).usage
