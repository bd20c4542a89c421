"""The façade over real engine threads; events, never time, bring the tests forward."""

import asyncio
import threading
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from engines.scripted.fault import Fault, FaultPlan, Operation
from engines.scripted.vocabulary import Special
from service.errors import (
    Draining,
    DuplicateRequest,
    EngineError,
    EngineStopped,
    InvalidRequest,
    NoSuchRequest,
    QueueFull,
    RequestTimedOut,
    Starting,
    UnknownModel,
    UnsupportedCompletionCancellation,
)
from service.generation.finish import FinishReason
from service.runtime.models import ModelRegistry
from service.runtime.request import ChatPrompt, Ended, TextPrompt
from service.runtime.runtime import Runtime
from service.runtime.settings import RuntimeOptions
from service.runtime.work import LONG_CHARACTERS
from service.speculation.observer import LifecycleStage
from service.text.conversation import ChatMessage
from service.text.language import Regex
from service.text.tools import NamedTool, Tool
from tests.service.runtime.doubles import (
    SMALL,
    expected_tokens,
    loaded_model,
    loaded_proposer,
    request,
    tokens_of,
)

pytestmark = pytest.mark.asyncio


class Gate:
    """Holds whoever reaches one lifecycle stage until it is opened; tells when someone has."""

    def __init__(self, stage):
        self._stage = stage
        self._open = threading.Event()
        self._reached = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def __call__(self, stage):
        if stage is self._stage and not self._open.is_set():
            self._loop.call_soon_threadsafe(self._reached.set)
            self._open.wait(60)

    async def reached(self):
        await self._reached.wait()

    def open(self):
        self._open.set()


@asynccontextmanager
async def running(*models, options=None):
    runtime = Runtime(ModelRegistry(models or (loaded_model(),)), options)
    await runtime.start()
    try:
        yield runtime
    finally:
        await runtime.stop()


async def messages_of(generation):
    return [message async for message in generation]


async def complete(runtime, asked):
    return await messages_of(await runtime.generate(asked))


async def counted(runtime, model=""):
    """Return the statistics once the turns that ended the requests are counted in them."""
    await asyncio.wait_for(runtime._live.until_empty(), 30)
    return runtime.statistics(model)


async def test_request_streams_its_rounds_and_then_its_end():
    async with running(loaded_model(proposers=(loaded_proposer("draft"),))) as runtime:
        generation = await runtime.generate(request("hello", max_new_tokens=9))
        assert "draft" == generation.admitted.speculation.proposer
        assert 5 == generation.admitted.prompt_tokens
        messages = await messages_of(generation)
    assert expected_tokens("hello", 9) == tokens_of(messages)
    assert FinishReason.MAX_TOKENS is messages[-1].reason


async def test_many_requests_at_once_each_get_their_own_output():
    texts = [f"prompt {number}" for number in range(200)]
    async with running(loaded_model(replace(SMALL, max_slots=8))) as runtime:
        outputs = await asyncio.gather(
            *(complete(runtime, request(text, request_id=text, max_new_tokens=6)) for text in texts)
        )
        statistics = await counted(runtime)
        assert (200, 0) == (statistics.scheduler.completed_requests, statistics.active_lanes)
    assert [expected_tokens(text, 6) for text in texts] == [tokens_of(each) for each in outputs]


async def test_runtime_that_has_not_started_refuses_requests():
    runtime = Runtime(ModelRegistry((loaded_model(),)))
    assert not runtime.is_serving
    with pytest.raises(Starting):
        await runtime.generate(request())


async def test_runtime_whose_options_do_not_fit_the_engine_does_not_start():
    runtime = Runtime(ModelRegistry((loaded_model(replace(SMALL, cancellations=frozenset())),)))
    with pytest.raises(UnsupportedCompletionCancellation):
        await runtime.start()
    assert not runtime.is_serving


async def test_refused_request_leaves_its_id_free():
    async with running() as runtime:
        with pytest.raises(UnknownModel):
            await runtime.generate(request(model="other"))
        with pytest.raises(InvalidRequest):
            await runtime.generate(request(""))
        assert isinstance((await complete(runtime, request(max_new_tokens=2)))[-1], Ended)


async def test_live_id_is_refused_to_its_caller_alone_and_free_after_the_end():
    gate = Gate(LifecycleStage.EXECUTION)
    async with running(loaded_model(observer=gate)) as runtime:
        first = await runtime.generate(request(max_new_tokens=2))
        with pytest.raises(DuplicateRequest):
            await runtime.generate(request(max_new_tokens=2))
        other = await runtime.generate(request(caller="other", max_new_tokens=2))
        gate.open()
        await messages_of(other)
        async for message in first:
            if isinstance(message, Ended):
                again = await runtime.generate(request(max_new_tokens=2))
        assert isinstance((await messages_of(again))[-1], Ended)


async def test_cancel_by_id_ends_a_live_request_with_the_round_being_published():
    gate = Gate(LifecycleStage.PUBLICATION)
    async with running(loaded_model(observer=gate)) as runtime:
        generation = await runtime.generate(request(max_new_tokens=100))
        await gate.reached()
        runtime.cancel("c", "r")
        gate.open()
        messages = await messages_of(generation)
        assert FinishReason.CANCELLED is messages[-1].reason
        assert expected_tokens("hello", 1) == tokens_of(messages)
        with pytest.raises(NoSuchRequest):
            runtime.cancel("c", "r")


async def test_cancel_reaches_a_request_that_is_still_being_prepared():
    gate = Gate(LifecycleStage.ADMISSION)
    model = loaded_model(observer=gate)
    async with running(model) as runtime:
        coming = asyncio.create_task(runtime.generate(request()))
        await gate.reached()
        runtime.cancel("c", "r")
        gate.open()
        messages = await messages_of(await coming)
        assert FinishReason.CANCELLED is messages[-1].reason
        assert () == tokens_of(messages)
        assert 0 == model.target.passes


CHAT = ChatPrompt((ChatMessage("user", "hello"),), tools=(Tool("f"),), dialect="hermes")


@pytest.mark.parametrize(
    "demanding",
    [
        {"constraint": Regex("a+")},
        {"prompt": CHAT},
        {"prompt": TextPrompt("x" * LONG_CHARACTERS)},
        {"prompt": ChatPrompt((ChatMessage("user", "x" * LONG_CHARACTERS),))},
    ],
)
async def test_requests_that_are_slow_to_prepare_keep_no_other_waiting(demanding):
    gate = Gate(LifecycleStage.ADMISSION)
    slow = loaded_model(replace(SMALL, max_context=512), name="slow", observer=gate)
    options = RuntimeOptions(preparation_threads=1)
    async with running(loaded_model(), slow, options=options) as runtime:
        waiting = request(model="slow", request_id="slow", **demanding)
        preparing = asyncio.create_task(runtime.generate(waiting))
        await gate.reached()
        try:
            async with asyncio.timeout(20):
                messages = await complete(runtime, request(max_new_tokens=3))
        finally:
            gate.open()
        await asyncio.wait((preparing,))
        assert isinstance(preparing.exception(), InvalidRequest | None)
    assert expected_tokens("hello", 3) == tokens_of(messages)


async def test_cancel_of_another_callers_request_is_refused():
    gate = Gate(LifecycleStage.EXECUTION)
    async with running(loaded_model(observer=gate)) as runtime:
        generation = await runtime.generate(request(max_new_tokens=3))
        with pytest.raises(NoSuchRequest):
            runtime.cancel("other", "r")
        gate.open()
        assert expected_tokens("hello", 3) == tokens_of(await messages_of(generation))


async def test_reader_that_goes_away_ends_its_request_within_one_pass():
    gate = Gate(LifecycleStage.COMPLETION)
    model = loaded_model(observer=gate)
    async with running(model) as runtime:
        reader = asyncio.create_task(complete(runtime, request(max_new_tokens=100)))
        await gate.reached()
        passes = model.target.passes
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        gate.open()
        await runtime.drain(60)
        assert passes == model.target.passes
        assert 1 == runtime.statistics().scheduler.cancelled_requests


async def test_full_queue_refuses_the_next_request():
    gate = Gate(LifecycleStage.EXECUTION)
    model = loaded_model(replace(SMALL, max_slots=1), observer=gate)
    async with running(model, options=RuntimeOptions(max_queued_requests=1)) as runtime:
        first = await runtime.generate(request(request_id="1", max_new_tokens=2))
        await gate.reached()
        second = await runtime.generate(request(request_id="2", max_new_tokens=2))
        assert 1 == runtime.statistics().queued_requests
        with pytest.raises(QueueFull):
            await runtime.generate(request(request_id="3", max_new_tokens=2))
        gate.open()
        for generation in (first, second):
            assert expected_tokens("hello", 2) == tokens_of(await messages_of(generation))


async def test_longest_allowed_time_bounds_every_request():
    options = RuntimeOptions(max_request_seconds=60.0)
    async with running(options=options) as runtime:
        generation = await runtime.generate(request(timeout=3600.0, max_new_tokens=2))
        assert 60.0 == generation.admitted.timeout
        await messages_of(generation)


@pytest.mark.parametrize(("asked", "allowed"), [(0.01, None), (3600.0, 0.01)])
async def test_time_of_a_request_counts_while_it_is_prepared(asked, allowed):
    gate = Gate(LifecycleStage.ADMISSION)
    options = RuntimeOptions(max_request_seconds=allowed)
    async with running(loaded_model(observer=gate), options=options) as runtime:
        try:
            async with asyncio.timeout(20):
                with pytest.raises(RequestTimedOut) as late:
                    await runtime.generate(request(timeout=asked))
        finally:
            gate.open()
        assert 0.01 == late.value.seconds
        with pytest.raises(NoSuchRequest):
            runtime.cancel("c", "r")


async def test_drain_refuses_new_requests_and_lets_live_ones_end():
    gate = Gate(LifecycleStage.EXECUTION)
    async with running(loaded_model(observer=gate)) as runtime:
        told = []
        runtime.on_serving_change(told.append)
        generation = await runtime.generate(request(max_new_tokens=5))
        await gate.reached()
        draining = asyncio.create_task(runtime.drain(60))
        await asyncio.sleep(0)
        assert [False] == told
        with pytest.raises(Draining):
            await runtime.generate(request(request_id="late"))
        gate.open()
        assert expected_tokens("hello", 5) == tokens_of(await messages_of(generation))
        await draining


async def test_drain_fails_what_is_left_after_the_grace():
    gate = Gate(LifecycleStage.EXECUTION)
    async with running(loaded_model(observer=gate)) as runtime:
        generation = await runtime.generate(request(max_new_tokens=100))
        await gate.reached()
        draining = asyncio.create_task(runtime.drain(0))
        for _ in range(10):
            await asyncio.sleep(0)
        gate.open()
        messages = await messages_of(generation)
        assert isinstance(messages[-1].error, Draining)
        await draining


async def test_drain_with_nothing_live_ends_at_once():
    async with running() as runtime:
        await runtime.drain(3600)


async def test_fault_of_the_engine_fails_live_requests_and_ends_serving():
    gate = Gate(LifecycleStage.EXECUTION)
    faults = FaultPlan([Fault(Operation.CLOSE, EngineError("the device is lost"))])
    async with running(loaded_model(faults=faults, observer=gate)) as runtime:
        told = asyncio.Queue()
        runtime.on_serving_change(told.put_nowait)
        generations = [
            await runtime.generate(request(request_id=str(number), max_new_tokens=3 + number))
            for number in range(3)
        ]
        gate.open()
        ends = [(await messages_of(generation))[-1] for generation in generations]
        assert [EngineStopped] * 2 == [type(end.error) for end in ends[1:]]
        assert FinishReason.MAX_TOKENS is ends[0].reason
        assert await told.get() is False
        assert not runtime.is_serving
        assert not runtime.statistics().is_serving
        with pytest.raises(EngineStopped, match="the device is lost"):
            await runtime.generate(request(request_id="late"))


async def test_stop_fails_what_lives_and_may_be_repeated():
    gate = Gate(LifecycleStage.EXECUTION)
    async with running(loaded_model(observer=gate)) as runtime:
        generation = await runtime.generate(request(max_new_tokens=100))
        await gate.reached()
        stopping = asyncio.create_task(runtime.stop())
        await asyncio.sleep(0)
        gate.open()
        await stopping
        assert isinstance((await messages_of(generation))[-1].error, Draining)
        await runtime.stop()
        assert not runtime.is_serving


async def test_models_run_side_by_side_and_are_counted_apart():
    models = (loaded_model(name="first"), loaded_model(name="second", aliases=("two",)))
    async with running(*models) as runtime:
        await complete(runtime, request(model="two", max_new_tokens=2))
        assert models == runtime.models()
        assert runtime.model() is models[0]
        assert 0 == runtime.statistics().scheduler.completed_requests
        assert 1 == (await counted(runtime, "second")).scheduler.completed_requests
        assert "second" == runtime.statistics("two").model
        with pytest.raises(UnknownModel):
            runtime.statistics("third")


async def test_statistics_state_limits_beside_counters():
    async with running() as runtime:
        statistics = runtime.statistics()
    assert (2, 256) == (statistics.max_lanes, statistics.max_queued_requests)
    assert 2 * 128 == statistics.max_kv_cache_tokens


async def test_text_is_turned_into_tokens_and_back():
    async with running() as runtime:
        tokens, lost = await runtime.tokenize("", "héllo", add_special_tokens=True)
        assert (tuple("héllo".encode()), "") == (tokens, lost)
        assert "héllo" == await runtime.detokenize("", tokens, skip_special_tokens=True)
        chat = ChatPrompt((ChatMessage("user", "hi"),))
        text, rendered = await runtime.render_chat("", chat)
        assert "<|bos|><|user|>hi<|reply|>" == text
        assert (Special.BOS, Special.USER, *b"hi", Special.REPLY) == rendered


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"dialect": "none such"}, "chat.dialect"),
        ({"tool_choice": NamedTool("other")}, "chat.tool_choice.name"),
        ({"dialect": "plain", "tools": (Tool("clock"),)}, "chat.tools"),
    ],
)
async def test_chat_that_no_generation_would_take_is_not_rendered(changes, field):
    chat = ChatPrompt((ChatMessage("user", "hi"),), **changes)
    async with running() as runtime:
        with pytest.raises(InvalidRequest) as rendered:
            await runtime.render_chat("", chat)
        with pytest.raises(InvalidRequest) as generated:
            await runtime.generate(request(prompt=chat))
    assert [field] == [violation.field for violation in rendered.value.violations]
    assert rendered.value.violations == generated.value.violations


async def test_ids_that_are_no_tokens_are_refused_by_their_places():
    async with running() as runtime:
        with pytest.raises(InvalidRequest) as caught:
            await runtime.detokenize("", (65, 10_000), skip_special_tokens=True)
    assert ["token_ids[1]"] == [each.field for each in caught.value.violations]
