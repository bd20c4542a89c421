import pytest

import outrider
from outrider.answers import answer_of
from outrider.calls import events_of
from outrider.events import FinishReason, TokenSource, deltas, tokens_of
from outrider.v1 import chat_pb2
from outrider.v1 import generation_pb2 as wire
from outrider.v1.generation_service_pb2 import CompleteResponse, StreamGenerateResponse


@pytest.mark.parametrize(
    ("enum", "contract"), [(FinishReason, wire.FinishReason), (TokenSource, wire.TokenSource)]
)
def test_enum_has_every_value_of_the_contract(enum, contract):
    prefix = contract.Name(0).removesuffix("UNSPECIFIED")
    assert dict(contract.items()) == {prefix + member.name: member.value for member in enum}


def test_value_of_a_newer_server_reads_as_unspecified():
    assert FinishReason.UNSPECIFIED is FinishReason(99)


def test_value_is_printed_by_its_name():
    assert ("MAX_TOKENS", "PLAIN ") == (str(FinishReason.MAX_TOKENS), f"{TokenSource.PLAIN:<6}")


EVERY_DELTA = (
    (wire.SemanticEvent(text_delta="a"), outrider.TextDelta("a")),
    (wire.SemanticEvent(reasoning_delta="b"), outrider.ReasoningDelta("b")),
    (
        wire.SemanticEvent(tool_call_start=wire.ToolCallStart(index=1, id="c", name="f")),
        outrider.ToolCallStart(1, "c", "f"),
    ),
    (
        wire.SemanticEvent(
            tool_arguments_delta=wire.ToolArgumentsDelta(index=1, json_fragment="{")
        ),
        outrider.ToolArgumentsDelta(1, "{"),
    ),
    (wire.SemanticEvent(tool_call_end=wire.ToolCallEnd()), outrider.ToolCallEnd()),
)


def test_every_event_of_the_contract_has_its_delta():
    """The end is no delta: it comes as `Finished`."""
    messages = [message for message, _ in EVERY_DELTA]
    kinds = {message.WhichOneof("event") for message in messages}
    assert kinds | {"finished"} == set(wire.SemanticEvent.DESCRIPTOR.fields_by_name)
    assert [delta for _, delta in EVERY_DELTA] == list(deltas(messages))


def test_round_comes_before_what_it_let_out():
    message = wire.Round(
        tokens=wire.CommittedTokens(
            first_position=3, token_ids=[7], sources=[wire.TOKEN_SOURCE_BONUS]
        ),
        judged_tokens=2,
        accepted_tokens=1,
        events=[wire.SemanticEvent(text_delta="x")],
    )
    token = outrider.Token(7, TokenSource.BONUS)
    expected = [outrider.Round(3, (token,), judged=2, accepted=1), outrider.TextDelta("x")]
    assert expected == list(events_of(StreamGenerateResponse(round=message)))


ALTERNATIVES = [
    wire.Alternatives(token_ids=[7, 9], logprobs=[-0.5, -1.5]),
    wire.Alternatives(token_ids=[8], logprobs=[-0.25]),
]
LIKELY = (outrider.Alternative(7, -0.5), outrider.Alternative(9, -1.5))


@pytest.mark.parametrize(
    ("alternatives", "first"), [([], ()), (ALTERNATIVES, LIKELY)], ids=["alone", "with others"]
)
def test_tokens_have_their_log_probabilities(alternatives, first):
    message = wire.CommittedTokens(
        token_ids=[7, 8], sources=[1, 1], logprobs=[-0.5, -0.25], alternatives=alternatives
    )
    token, other = tokens_of(message)
    assert (7, -0.5, first) == (token.id, token.logprob, token.alternatives)
    assert -0.25 == other.logprob


def test_tokens_without_log_probabilities_have_none():
    (token,) = tokens_of(wire.CommittedTokens(token_ids=[7], sources=[1]))
    assert (None, ()) == (token.logprob, token.alternatives)


def test_log_probabilities_of_the_prompt_come_with_its_round():
    prompt = wire.PromptLogprobs(logprobs=[-0.5, -0.25], alternatives=ALTERNATIVES)
    (committed,) = events_of(StreamGenerateResponse(round=wire.Round(prompt_logprobs=prompt)))
    expected = outrider.Logprob(-0.5, LIKELY)
    assert (expected, -0.25) == (
        committed.prompt_logprobs[0],
        committed.prompt_logprobs[1].logprob,
    )


def test_whole_answer_holds_everything():
    call = chat_pb2.ToolCall(id="c", name="f", arguments_json="{}")
    response = CompleteResponse(
        text="so",
        reasoning="hm",
        tool_calls=[call],
        prompt_logprobs=wire.PromptLogprobs(logprobs=[-1.0]),
        finished=wire.Finished(usage=wire.Usage(completion_tokens=9, reasoning_tokens=4)),
    )
    answer = answer_of(response)
    made = outrider.ToolCall("c", "f", "{}")
    assert ("so", "hm", (made,), (outrider.Logprob(-1.0),), 4) == (
        answer.text,
        answer.reasoning,
        answer.tool_calls,
        answer.prompt_logprobs,
        answer.finished.reasoning_tokens,
    )
    assert outrider.Message("assistant", "so", "hm", (made,)) == answer.message


def test_turn_of_an_answer_without_reasoning_has_none():
    assert answer_of(CompleteResponse(text="so")).message.reasoning is None


def test_end_comes_after_what_it_let_out():
    message = wire.Finished(
        reason=wire.FINISH_REASON_STOP_SEQUENCE,
        matched_stop=wire.MatchedStop(index=0, token_id=0),
        events=[
            wire.SemanticEvent(text_delta="x"),
            wire.SemanticEvent(finished=wire.OutputFinished()),
        ],
    )
    delta, finished = events_of(StreamGenerateResponse(finished=message))
    assert outrider.TextDelta("x") == delta
    assert (FinishReason.STOP_SEQUENCE, 0) == (finished.reason, finished.matched_stop)


def test_event_of_a_newer_server_is_passed_over():
    assert [] == list(events_of(StreamGenerateResponse()))
    assert [] == list(deltas([wire.SemanticEvent()]))
