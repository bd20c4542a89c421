"""What an answer holds beside its text: log-probabilities, reasoning, tool calls, constraints."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence

import grpc
import pytest
from grpc import aio

from engines.scripted.law import ScriptLaw
from engines.scripted.model import ScriptedSettings
from engines.scripted.vocabulary import Special
from outrider.v1 import chat_pb2, generation_pb2, settings_pb2
from outrider.v1.generation_service_pb2 import StreamGenerateRequest, StreamGenerateResponse
from service.runtime.models import LoadedModel
from tests.service.rpc.harness import complete, generation, loaded, served, stream

pytestmark = pytest.mark.asyncio

AUTO = settings_pb2.SPECULATION_MODE_AUTO
NONE = settings_pb2.SPECULATION_MODE_NONE


def listed(alternatives: Sequence[generation_pb2.Alternatives]) -> list[list[tuple[int, float]]]:
    return [list(zip(each.token_ids, each.logprobs, strict=True)) for each in alternatives]


@pytest.mark.parametrize("temperature", [0.0, 0.7])
@pytest.mark.parametrize("proposer", ["right", "wrong", "mostly-right", "own-law"])
async def test_log_probabilities_are_those_of_plain_decoding(proposer: str, temperature: float):
    """Case B25: of the target, at each token's own place."""
    message = generation(max_new_tokens=30, temperature=temperature, seed=5, logprobs=3)
    message.speculation.proposer = proposer
    message.speculation.num_speculative_tokens = 4
    async with served() as server:
        tokens = (await complete(server, message)).tokens
        for place in range(0, 30, 4):
            before = bytes(tokens.token_ids[:place]).decode()
            plain = generation(
                f"once{before}", max_new_tokens=1, temperature=temperature, logprobs=3
            )
            plain.speculation.mode = NONE
            expected = dict(listed((await complete(server, plain)).tokens.alternatives)[0])
            assert expected == pytest.approx(dict(listed(tokens.alternatives)[place]), abs=1e-4)


@pytest.mark.parametrize("mode", [AUTO, NONE])
@pytest.mark.parametrize("temperature", [0.0, 0.7])
async def test_each_token_has_its_log_probability_among_the_likeliest(temperature, mode: int):
    """Case B25: one for each token that was sent, sorted, and not all of them zero."""
    message = generation(max_new_tokens=30, temperature=temperature, seed=5, logprobs=2)
    message.speculation.mode = mode
    async with served() as server:
        tokens = (await complete(server, message)).tokens
    assert 30 == len(tokens.token_ids) == len(tokens.logprobs) == len(tokens.alternatives)
    assert any(value != 0.0 for value in tokens.logprobs)
    others = listed(tokens.alternatives)
    for token, logprob, likeliest in zip(tokens.token_ids, tokens.logprobs, others, strict=True):
        values = [value for _, value in likeliest]
        assert sorted(values, reverse=True) == values
        assert (token, logprob) in likeliest


@pytest.mark.parametrize("mode", [AUTO, NONE])
async def test_prompt_has_its_log_probabilities_once(mode: int):
    """From its second token on, with the first round of the stream, and in the whole answer."""
    message = generation("once upon", max_new_tokens=12, prompt_logprobs=2)
    message.speculation.mode = mode
    async with served() as server:
        whole = await complete(server, message)
        rounds = [step.round for step in await stream(server, message) if step.HasField("round")]
    assert len("once upon") - 1 == len(whole.prompt_logprobs.logprobs)
    assert [True, *([False] * (len(rounds) - 1))] == [
        each.HasField("prompt_logprobs") for each in rounds
    ]
    assert whole.prompt_logprobs == rounds[0].prompt_logprobs
    assert 0 == len(whole.tokens.logprobs)


async def test_more_log_probabilities_than_an_answer_may_list_are_refused():
    message = generation("a" * 60_000, max_new_tokens=1, prompt_logprobs=20)
    wide = ScriptedSettings(max_context=65_536)
    async with served(loaded(wide)) as server:
        with pytest.raises(aio.AioRpcError) as caught:
            await complete(server, message)
    assert grpc.StatusCode.INVALID_ARGUMENT == caught.value.code()
    assert "generation.settings.prompt_logprobs" in caught.value.details()


def says(output: str) -> LoadedModel:
    """Return a model that answers a turn of "hi" with exactly this."""
    prompt = (Special.BOS, Special.USER, *b"hi", Special.REPLY)
    law = ScriptLaw(((prompt, tuple(output.encode())),))
    return loaded(ScriptedSettings(law=law, max_context=1024))


def chat(text: str = "hi", **fields: object) -> generation_pb2.Generation:
    turn = chat_pb2.ChatMessage(role="user", content=text)
    return generation_pb2.Generation(chat=chat_pb2.Chat(messages=[turn], **fields))


@pytest.mark.parametrize("proposer", ["right", "wrong", "mostly-right"])
async def test_reasoning_is_told_apart_and_counted(proposer: str):
    """Case B41: of all the tokens, those of the reasoning."""
    message = chat()
    message.speculation.proposer = proposer
    async with served(says("<think>\nhm\n</think>\n\nso")) as server:
        answer = await complete(server, message)
    usage = answer.finished.usage
    assert ("hm", "so") == (answer.reasoning.strip(), answer.text.strip())
    assert (
        len("hm")
        < usage.reasoning_tokens
        < usage.completion_tokens
        == len("<think>\nhm\n</think>\n\nso") + len("E")
    )


SCHEMA = '{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}'
WEATHER = chat_pb2.Tool(name="weather", parameters_json_schema=SCHEMA)
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Prague"}}\n</tool_call>'


@pytest.mark.parametrize("proposer", ["right", "wrong", "mostly-right"])
@pytest.mark.parametrize("width", [1, 4, 15])
async def test_tool_call_is_told_once_and_whole(proposer: str, width: int):
    """Case B37: however its tokens are cut into rounds. The engine repeats what it is told."""
    message = chat(f"Let me see. {CALL}", tools=[WEATHER], parallel_tool_calls=False)
    message.speculation.proposer = proposer
    message.speculation.num_speculative_tokens = width
    async with served(loaded(ScriptedSettings(max_context=1024))) as server:
        answer = await complete(server, message)
        steps = await stream(server, message)
    (call,) = answer.tool_calls
    assert ("weather", {"city": "Prague"}) == (call.name, json.loads(call.arguments_json))
    assert "You wrote: Let me see." == answer.text.strip()
    events = [event for step in steps for event in (*step.round.events, *step.finished.events)]
    kinds = [event.WhichOneof("event") for event in events]
    assert (1, 1) == (kinds.count("tool_call_start"), kinds.count("tool_call_end"))
    fragments = (e.tool_arguments_delta.json_fragment for e in events)
    assert call.arguments_json == "".join(fragments)


async def test_result_of_a_call_is_a_turn():
    """The whole way of a tool: offered, called, answered, and told about."""
    call = chat_pb2.ToolCall(id="c", name="weather", arguments_json='{"city": "Prague"}')
    turns = [
        chat_pb2.ChatMessage(role="user", content="hi"),
        chat_pb2.ChatMessage(role="assistant", tool_calls=[call]),
        chat_pb2.ChatMessage(role="tool", tool_call_id="c", content="12 degrees"),
    ]
    message = generation_pb2.Generation(chat=chat_pb2.Chat(messages=turns, tools=[WEATHER]))
    message.settings.max_new_tokens = 4
    async with served(says("so")) as server:
        answer = await complete(server, message)
    assert 4 == answer.finished.usage.completion_tokens


Constraint = settings_pb2.Constraint
CHOICE = Constraint(choice=Constraint.Choice(texts=["hill", "wind"]))


@pytest.mark.parametrize("constraint", [CHOICE, Constraint(regex="(ab){3}")])
@pytest.mark.parametrize("proposer", ["right", "wrong", "mostly-right", "own-law"])
@pytest.mark.parametrize("temperature", [0.0, 0.8])
async def test_constrained_output_matches_and_ends_by_itself(
    constraint: Constraint, proposer: str, temperature: float
):
    """And is the one of plain decoding where nothing is drawn."""
    message = generation(constraint=constraint, temperature=temperature, seed=3)
    message.speculation.proposer = proposer
    plain = generation(constraint=constraint, temperature=temperature, seed=3)
    plain.speculation.mode = NONE
    async with served() as server:
        answer, expected = await complete(server, message), await complete(server, plain)
    assert answer.text in {"hill", "wind", "ababab"}
    assert generation_pb2.FINISH_REASON_GRAMMAR_COMPLETE == answer.finished.reason
    assert constraint == answer.admitted.settings.constraint
    assert temperature or expected.text == answer.text


MALFORMED = (
    (Constraint(regex="[a-z"), "regex"),
    (Constraint(regex="(?=a)b"), "regex"),
    (Constraint(lark='start: "test'), "lark"),
    (Constraint(json_schema='{"type": "objekt"}'), "json_schema"),
    (Constraint(json_schema="{"), "json_schema"),
)


@pytest.mark.parametrize(("constraint", "language"), MALFORMED)
async def test_malformed_constraint_is_refused_while_others_go_on(
    constraint: Constraint, language: str
):
    """Case B33: by the parser's words, before any token."""
    async with served() as server:
        control = asyncio.create_task(complete(server, generation(max_new_tokens=60)))
        with pytest.raises(aio.AioRpcError) as caught:
            await complete(server, generation(constraint=constraint))
        assert 60 == len((await control).tokens.token_ids)
    assert grpc.StatusCode.INVALID_ARGUMENT == caught.value.code()
    assert caught.value.details().startswith(f"generation.settings.constraint.{language}: ")


async def test_output_without_a_token_left_fails_after_what_was_sent():
    """What was delivered stays, and the next request is served."""
    never = [ord("b"), 257]
    message = generation(constraint=Constraint(regex="ab"), banned_token_ids=never)
    async with served() as server:
        call = server.generation.StreamGenerate(StreamGenerateRequest(generation=message))
        received, failure = await until_failure(call)
        after = await complete(server, generation(max_new_tokens=1))
    assert [ord("a")] == [token for step in received for token in step.round.tokens.token_ids]
    for field in ("settings.constraint", "settings.banned_token_ids"):
        assert field in failure.details()
    assert 1 == len(after.tokens.token_ids)


async def until_failure(
    call: AsyncIterator[StreamGenerateResponse],
) -> tuple[list[StreamGenerateResponse], aio.AioRpcError]:
    received = []
    try:
        async for step in call:
            received.append(step)  # noqa: PERF401 - what came before the failure counts
    except aio.AioRpcError as failure:
        return received, failure
    raise AssertionError("the call did not fail")
