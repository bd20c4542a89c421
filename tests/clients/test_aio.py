import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

import outrider
from outrider.events import FinishReason

pytestmark = pytest.mark.asyncio

PROMPT = "Once upon"


@asynccontextmanager
async def connected(address: str) -> AsyncIterator[outrider.AsyncClient]:
    async with outrider.AsyncClient(address) as client:
        yield client


async def test_stream_brings_the_same_answer_as_a_whole_one(address: str):
    async with connected(address) as client:
        answer = await client.complete(PROMPT, max_new_tokens=30)
        events = [event async for event in client.stream(PROMPT, max_new_tokens=30)]
        text = [piece async for piece in client.stream(PROMPT, max_new_tokens=30).text()]
    assert FinishReason.MAX_TOKENS is answer.reason
    assert answer.text == "".join(text)
    assert answer.text == "".join(e.text for e in events if isinstance(e, outrider.TextDelta))
    assert isinstance(events[0], outrider.Admitted)
    assert isinstance(events[-1], outrider.Finished)


async def test_many_streams_share_one_connection(address: str):
    async with connected(address) as client:
        alone = await client.complete(PROMPT, max_new_tokens=30)
        several = await asyncio.gather(
            *(client.complete(PROMPT, max_new_tokens=30) for _ in range(16))
        )
    assert {alone.text} == {answer.text for answer in several}


async def test_conversation_is_answered(address: str):
    async with connected(address) as client:
        answer = await client.chat([{"role": "user", "content": "Hello"}], max_new_tokens=40)
    assert "Hello" in answer.text


async def test_everything_else_of_an_answer_is_the_same(address: str):
    """Log-probabilities, constraints and tools, as the other client has them."""
    asked = [
        outrider.Message("user", 'Ask: <tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>')
    ]
    tools = [outrider.Tool("f")]
    options = {"max_new_tokens": 4, "logprobs": 1, "prompt_logprobs": 0}
    async with connected(address) as client:
        scored = await client.complete(PROMPT, **options)
        chosen = await client.complete(PROMPT, choice=["stone", "wall"])
        called = await client.chat(asked, tools=tools, tool_choice={"name": "f"})
        shown = await client.render_chat(outrider.Chat(asked, tools))
    with outrider.Client(address) as ordinary:
        assert scored.tokens == ordinary.complete(PROMPT, **options).tokens
    assert (4, len(PROMPT) - 1) == (len(scored.tokens), len(scored.prompt_logprobs))
    assert FinishReason.GRAMMAR_COMPLETE is chosen.reason
    assert [("f", {})] == [(each.name, each.arguments) for each in called.tool_calls]
    assert '"name": "f"' in shown


async def test_cancelled_stream_ends_without_an_error(address: str):
    async with connected(address) as client:
        stream = client.stream(PROMPT, max_new_tokens=4000, stop_on_eos=False)
        events = []
        async for event in stream:
            events.append(event)
            stream.cancel()
    assert isinstance(events[0], outrider.Admitted)
    assert not isinstance(events[-1], outrider.Finished)


async def test_leaving_a_stream_cancels_it(address: str):
    async with connected(address) as client:
        async with client.stream(PROMPT, max_new_tokens=4000, stop_on_eos=False) as stream:
            assert isinstance(await anext(aiter(stream)), outrider.Admitted)
        rest = [event async for event in stream]
    assert [] == [event for event in rest if isinstance(event, outrider.Finished)]


async def test_cancelled_task_is_cancelled(address: str):
    """A task's own cancellation is never swallowed."""
    started = asyncio.Event()

    async def read(client: outrider.AsyncClient) -> None:
        stream = client.stream(PROMPT, max_new_tokens=8000, stop_on_eos=False)
        async for _ in stream:
            started.set()

    async with connected(address) as client:
        task = asyncio.create_task(read(client))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_refused_request_names_every_field(address: str):
    async with connected(address) as client:
        with pytest.raises(outrider.InvalidRequest) as caught:
            await client.complete("", top_k=-1)
        with pytest.raises(outrider.InvalidRequest):
            [event async for event in client.stream("")]
    fields = [violation.field for violation in caught.value.violations]
    assert ["generation.text", "generation.settings.top_k"] == fields


async def test_timeout_is_a_deadline(address: str):
    async with connected(address) as client:
        options = {"max_new_tokens": 8000, "stop_on_eos": False, "timeout": 0.001}
        with pytest.raises(outrider.DeadlineExceeded):
            [event async for event in client.stream(PROMPT, **options)]


async def test_models_tokens_rendering_and_statistics(address: str):
    async with connected(address) as client:
        (model,) = await client.models()
        tokens = await client.tokenize("ab")
        text = await client.detokenize(tokens)
        rendered = await client.render_chat([outrider.Message("user", "hi")])
        statistics = await client.statistics()
        load = await client.load()
    assert ("scripted", (97, 98), "ab") == (model.name, tokens, text)
    assert "<|bos|><|user|>hi<|reply|>" == rendered
    assert (8, 8) == (load.max_lanes, statistics.options.max_pass_lanes)
