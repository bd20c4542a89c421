"""What the unary and the streamed call answer."""

import pytest
from google.protobuf.duration_pb2 import Duration

from engines.scripted.law import ScriptLaw
from engines.scripted.model import ScriptedSettings
from outrider.v1 import chat_pb2, generation_pb2, settings_pb2
from tests.service.rpc.harness import complete, generation, loaded, served, stream, text_of

pytestmark = pytest.mark.asyncio

NONE = settings_pb2.SpeculationSettings(mode=settings_pb2.SPECULATION_MODE_NONE)
CONTEXT = 128


async def test_stream_is_admitted_then_rounds_then_finished():
    async with served() as server:
        responses = await stream(server, generation(max_new_tokens=20))
    kinds = [response.WhichOneof("event") for response in responses]
    assert ["admitted", *["round"] * (len(kinds) - 2), "finished"] == kinds
    assert "round" in kinds


async def test_rounds_run_on_without_gaps_and_carry_their_sources():
    async with served() as server:
        responses = await stream(server, generation(max_new_tokens=20))
    rounds = [response.round.tokens for response in responses[1:-1]]
    positions = [0]
    for tokens in rounds:
        assert positions[-1] == tokens.first_position
        assert len(tokens.token_ids) == len(tokens.sources) > 0
        positions.append(positions[-1] + len(tokens.token_ids))
    assert (20, generation_pb2.TOKEN_SOURCE_PREFILL) == (positions[-1], rounds[0].sources[0])


async def test_whole_answer_is_what_the_stream_brings():
    async with served() as server:
        whole = await complete(server, generation(max_new_tokens=20))
        responses = await stream(server, generation(max_new_tokens=20))
    rounds = [response.round for response in responses[1:-1]]
    finished = responses[-1].finished
    streamed = "".join(map(text_of, [*(r.events for r in rounds), finished.events]))
    assert whole.text == streamed
    assert list(whole.tokens.token_ids) == [t for r in rounds for t in r.tokens.token_ids]
    assert whole.finished.reason == finished.reason == generation_pb2.FINISH_REASON_MAX_TOKENS
    assert "finished" == finished.events[-1].WhichOneof("event")
    assert whole.finished.usage == finished.usage


async def test_finished_event_comes_once_and_last():
    async with served() as server:
        responses = await stream(server, generation(max_new_tokens=20))
    events = [
        event.WhichOneof("event")
        for response in responses
        for event in (*response.round.events, *response.finished.events)
    ]
    assert (1, "finished") == (events.count("finished"), events[-1])


@pytest.mark.parametrize("proposer", ["right", "wrong", "mostly-right", "own-law"])
async def test_speculation_changes_no_token(proposer: str):
    speculative = generation(max_new_tokens=60)
    speculative.speculation.proposer = proposer
    plain = generation(max_new_tokens=60)
    plain.speculation.CopyFrom(NONE)
    async with served() as server:
        expected, actual = await complete(server, plain), await complete(server, speculative)
    assert expected.tokens.token_ids == actual.tokens.token_ids
    assert expected.text == actual.text
    assert 0 == expected.finished.statistics.draft_tokens
    assert 0 < actual.finished.statistics.draft_tokens


async def test_explicit_zero_temperature_is_greedy_each_time():
    """Case B58: zero, absent and one are three requests; here the model's own default is greedy."""
    async with served() as server:
        zeros = [await complete(server, generation(temperature=0)) for _ in range(3)]
        absent = await complete(server, generation())
        one = await complete(server, generation(temperature=1))
    assert {zeros[0].text} == {each.text for each in (*zeros, absent)}
    told = [each.admitted.settings for each in (zeros[0], absent, one)]
    assert [(False, 0.0), (False, 0.0), (True, 1.0)] == [
        (settings.do_sample, settings.temperature) for settings in told
    ]


async def test_admission_echoes_what_was_resolved():
    message = generation(
        temperature=0.5,
        top_k=3,
        seed=0,
        max_new_tokens=5,
        stops=[settings_pb2.Stop(text="#"), settings_pb2.Stop(token_id=7)],
        include_stop=True,
        eos_token_id=9,
        max_context=100,
    )
    message.timeout.CopyFrom(Duration(seconds=60))
    async with served() as server:
        admitted = (await complete(server, message)).admitted
    settings = admitted.settings
    assert (True, 0.5, 3, 1.0) == (
        settings.do_sample,
        settings.temperature,
        settings.top_k,
        settings.top_p,
    )
    assert (0, 5, 100, 9) == (
        settings.seed,
        settings.max_new_tokens,
        settings.max_context,
        settings.eos_token_id,
    )
    assert message.settings.stops == settings.stops
    assert settings.include_stop
    assert ([9], 4, 60) == (
        admitted.eos_token_ids,
        admitted.prompt_tokens,
        admitted.timeout.seconds,
    )
    assert ("right", True) == (admitted.speculation.proposer, admitted.speculation.fixed)


async def test_speculation_off_says_why():
    message = generation(max_new_tokens=2)
    message.speculation.CopyFrom(NONE)
    async with served() as server:
        speculation = (await complete(server, message)).admitted.speculation
    assert settings_pb2.SPECULATION_MODE_NONE == speculation.mode
    assert generation_pb2.SPECULATION_OFF_REASON_REQUESTED == speculation.off_reason
    assert "speculation.mode" in speculation.off_detail


async def test_fresh_seed_is_echoed_and_repeats_the_output():
    async with served() as server:
        first = await complete(server, generation(temperature=1.0, max_new_tokens=30))
        seed = first.admitted.settings.seed
        again = generation(temperature=1.0, max_new_tokens=30, seed=seed)
        again.speculation.num_speculative_tokens = 4
        fixed = [await complete(server, again) for _ in range(2)]
    assert seed == fixed[0].admitted.settings.seed
    assert fixed[0].tokens.token_ids == fixed[1].tokens.token_ids


async def test_chat_is_rendered_and_answered():
    turn = chat_pb2.ChatMessage(role="user", content="hello")
    message = generation_pb2.Generation(chat=chat_pb2.Chat(messages=[turn]))
    message.settings.max_new_tokens = 3
    async with served() as server:
        answer = await complete(server, message)
    # Begin, user, five letters, reply.
    assert (8, 3) == (answer.admitted.prompt_tokens, len(answer.tokens.token_ids))


SCRIPT = ScriptedSettings(law=ScriptLaw(((tuple(b"say"), tuple(b"left END right")),)))


async def test_matched_stop_is_named_and_not_sent():
    stops = [settings_pb2.Stop(text="zzz"), settings_pb2.Stop(text="END")]
    async with served(loaded(SCRIPT)) as server:
        answer = await complete(server, generation("say", stops=stops))
    assert ("left ", 1, "END") == (
        answer.text,
        answer.finished.matched_stop.index,
        answer.finished.matched_stop.text,
    )
    assert generation_pb2.FINISH_REASON_STOP_SEQUENCE == answer.finished.reason


async def test_included_stop_is_sent():
    stops = [settings_pb2.Stop(text="END")]
    async with served(loaded(SCRIPT)) as server:
        answer = await complete(server, generation("say", stops=stops, include_stop=True))
    assert "left END" == answer.text


async def test_stop_token_is_named_and_counts():
    stops = [settings_pb2.Stop(token_id=ord("E"))]
    async with served(loaded(SCRIPT)) as server:
        answer = await complete(server, generation("say", stops=stops))
    stop = answer.finished.matched_stop
    assert (0, "token_id", ord("E")) == (stop.index, stop.WhichOneof("stop"), stop.token_id)
    assert ord("E") == answer.tokens.token_ids[-1]


@pytest.mark.parametrize("count", [1, 2, 3, 16, 17])
async def test_budget_is_met_exactly(count: int):
    """Case B18: tokens, sources and usage agree with what was asked for."""
    async with served() as server:
        answer = await complete(server, generation(max_new_tokens=count))
    assert (count, count, count) == (
        len(answer.tokens.token_ids),
        len(answer.tokens.sources),
        answer.finished.usage.completion_tokens,
    )
    assert generation_pb2.FINISH_REASON_MAX_TOKENS == answer.finished.reason


async def test_budget_left_out_is_the_stated_default():
    """Case B18: 256, and never lowered silently: here the context ends the output."""
    async with served() as server:
        answer = await complete(server, generation())
    assert 256 == answer.admitted.settings.max_new_tokens
    assert generation_pb2.FINISH_REASON_CONTEXT_LENGTH == answer.finished.reason
    assert CONTEXT - len("once") == answer.finished.usage.completion_tokens


@pytest.mark.parametrize("mode", [settings_pb2.SPECULATION_MODE_AUTO, NONE.mode])
@pytest.mark.parametrize(
    ("length", "budget", "expected", "reason"),
    [
        (127, None, 1, generation_pb2.FINISH_REASON_CONTEXT_LENGTH),
        (100, 100, 28, generation_pb2.FINISH_REASON_CONTEXT_LENGTH),
        (100, 28, 28, generation_pb2.FINISH_REASON_MAX_TOKENS),
    ],
)
async def test_prompt_near_the_window_gets_what_fits(
    length: int, budget: int | None, expected: int, reason: int, mode: int
):
    """Case B24, with speculation and without."""
    message = generation("a" * length, **({} if budget is None else {"max_new_tokens": budget}))
    message.speculation.mode = mode
    async with served() as server:
        answer = await complete(server, message)
    assert (expected, reason) == (len(answer.tokens.token_ids), answer.finished.reason)


@pytest.mark.parametrize("temperature", [1e-6, 1e-46])
async def test_tiny_temperature_is_greedy(temperature: float):
    """Case B29: the greedy output, and the echo says so."""
    async with served() as server:
        greedy = await complete(server, generation(max_new_tokens=20, temperature=0.0))
        tiny = await complete(server, generation(max_new_tokens=20, temperature=temperature))
    assert greedy.tokens.token_ids == tiny.tokens.token_ids
    assert 0.0 == tiny.admitted.settings.temperature


async def test_top_k_beyond_the_vocabulary_is_off():
    """Case B29."""
    async with served() as server:
        answer = await complete(
            server, generation(max_new_tokens=5, temperature=1.0, top_k=2**31 - 1)
        )
    assert 5 == len(answer.tokens.token_ids)
