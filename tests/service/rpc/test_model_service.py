import json
from dataclasses import replace

import grpc
import pytest
from grpc import aio

from engines.scripted.vocabulary import tokenizer_json
from outrider.v1 import capability_pb2, chat_pb2, settings_pb2
from outrider.v1.model_service_pb2 import (
    DetokenizeRequest,
    GetModelRequest,
    ListModelsRequest,
    RenderChatRequest,
    TokenizeRequest,
)
from service.generation.setting_rules import MAX_LOGPROBS
from service.runtime.models import LoadedModel, ModelInformation
from service.runtime.text import ModelText
from service.text.stops import MAX_STOPS
from service.text.tokenizer import parse_tokenizer
from tests.service.rpc.harness import loaded, served

pytestmark = pytest.mark.asyncio


async def test_models_are_listed_with_what_they_can_do():
    async with served() as server:
        (model,) = (await server.models.ListModels(ListModelsRequest())).models
    assert ("scripted", 261, [257], True, "hermes") == (
        model.name,
        model.vocabulary_size,
        model.eos_token_ids,
        model.has_chat_template,
        model.dialect,
    )
    ready = model.speculative_capability.ready
    assert capability_pb2.DRAFT_SOURCE_SEPARATE == ready.source
    assert ["right", "wrong", "mostly-right", "own-law"] == [p.name for p in model.proposers]
    first = model.proposers[0]
    assert (
        settings_pb2.SPECULATION_MODE_DRAFT_MODEL,
        16,
        capability_pb2.DRAFT_SOURCE_SEPARATE,
    ) == (
        first.mode,
        first.max_speculative_tokens,
        first.draft_source,
    )


async def test_information_about_a_model_is_told_as_it_stands():
    about = ModelInformation("llama", "an engine", "w8", b"f" * 32, bit_exact=True, cache_bytes=0)
    async with served(replace(loaded(), information=about)) as server:
        model = (await server.models.GetModel(GetModelRequest())).model
    assert about == ModelInformation(
        model.architecture,
        model.engine,
        model.weights,
        model.tokenizer_fingerprint,
        model.bit_exact,
        model.limits.cache_bytes,
    )
    assert model.limits.HasField("cache_bytes")


async def test_size_of_the_cache_is_absent_where_the_engine_does_not_say():
    async with served() as server:
        limits = (await server.models.GetModel(GetModelRequest())).model.limits
    assert not limits.HasField("cache_bytes")


async def test_vocabulary_is_what_token_ids_are_held_against():
    """The rows of a target may be padded; ids that mean nothing are none."""
    model = loaded()
    model.target._limits = replace(model.target.limits, vocabulary_size=320)
    async with served(model) as server:
        told = (await server.models.GetModel(GetModelRequest())).model
    assert 261 == told.vocabulary_size


async def test_limits_are_those_that_requests_meet():
    async with served() as server:
        limits = (await server.models.GetModel(GetModelRequest())).model.limits
    assert (128, 127, 16, MAX_LOGPROBS, MAX_STOPS, 8, 256, 16 * 2**20) == (
        limits.max_context,
        limits.max_prompt_tokens,
        limits.max_speculative_tokens,
        limits.max_logprobs,
        limits.max_stops,
        limits.max_lanes,
        limits.max_queued_requests,
        limits.max_message_bytes,
    )


async def test_default_settings_are_what_nothing_asked_for_resolves_to():
    async with served() as server:
        settings = (await server.models.GetModel(GetModelRequest())).model.default_settings
    assert (False, 0.0, 50, 1.0, 256, True) == (
        settings.do_sample,
        settings.temperature,
        settings.top_k,
        settings.top_p,
        settings.max_new_tokens,
        settings.stop_on_eos,
    )
    assert not settings.HasField("seed")


async def test_unknown_model_is_not_found():
    async with served() as server:
        for call, request in (
            (server.models.GetModel, GetModelRequest(model="nobody")),
            (server.models.Tokenize, TokenizeRequest(model="nobody", text="x")),
        ):
            with pytest.raises(aio.AioRpcError) as caught:
                await call(request)
            assert grpc.StatusCode.NOT_FOUND == caught.value.code()


async def test_text_becomes_tokens_and_text_again():
    text = "naïve 👩‍💻"
    async with served() as server:
        tokens = (await server.models.Tokenize(TokenizeRequest(text=text))).token_ids
        back = await server.models.Detokenize(DetokenizeRequest(token_ids=tokens))
    assert list(text.encode()) == list(tokens)
    assert text == back.text


async def refusal(call, request) -> str:
    with pytest.raises(aio.AioRpcError) as caught:
        await call(request)
    assert grpc.StatusCode.INVALID_ARGUMENT == caught.value.code()
    return caught.value.details()


async def test_work_on_text_is_bounded_by_the_models_window():
    """Each of them says the bound and what was sent; the bound itself is served."""
    model = loaded()
    window, most = model.target.limits.max_context, model.max_characters
    turn = chat_pb2.ChatMessage(role="user", content="x" * most)
    async with served(model) as server:
        models = server.models
        whole = await models.Tokenize(TokenizeRequest(text="x" * most))
        text = await refusal(models.Tokenize, TokenizeRequest(text="x" * (most + 1)))
        tokens = await refusal(models.Detokenize, DetokenizeRequest(token_ids=[65] * (window + 1)))
        chat = await refusal(
            models.RenderChat, RenderChatRequest(chat=chat_pb2.Chat(messages=[turn]))
        )
    assert most == len(whole.token_ids)
    assert f"text: must hold at most {most} characters, got {most + 1}" == text
    assert f"token_ids: must hold at most {window} tokens, got {window + 1}" == tokens
    assert f"chat.messages: at most {most} characters, got {most + 4}" == chat


def without_a_byte() -> LoadedModel:
    """A model whose vocabulary lacks the symbol of byte 4."""
    document = json.loads(tokenizer_json())
    del document["model"]["vocab"][chr(0x104)]
    tokenizer = parse_tokenizer(json.dumps(document), "scripted")
    return replace(loaded(), text=ModelText("scripted", tokenizer))


async def test_characters_that_no_token_spells_are_named():
    async with served(without_a_byte()) as server:
        answer = await server.models.Tokenize(TokenizeRequest(text="a\x04b\x04"))
    assert (list(b"ab"), "\x04") == (list(answer.token_ids), answer.lost_characters)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, "a"),
        ({"skip_special_tokens": True}, "a"),
        ({"skip_special_tokens": False}, "a<|eos|>"),
    ],
)
async def test_special_tokens_are_left_out_unless_asked_for(asked: dict, expected: str):
    async with served() as server:
        request = DetokenizeRequest(token_ids=[ord("a"), 257], **asked)
        assert expected == (await server.models.Detokenize(request)).text


async def test_token_beyond_the_vocabulary_is_refused():
    async with served() as server:
        with pytest.raises(aio.AioRpcError) as caught:
            await server.models.Detokenize(DetokenizeRequest(token_ids=[0, 261]))
    assert grpc.StatusCode.INVALID_ARGUMENT == caught.value.code()
    assert "token_ids[1]" in caught.value.details()


async def test_chat_is_rendered_as_the_model_is_given_it():
    chat = chat_pb2.Chat(messages=[chat_pb2.ChatMessage(role="user", content="hi")])
    async with served() as server:
        rendered = await server.models.RenderChat(RenderChatRequest(chat=chat))
    assert "<|bos|><|user|>hi<|reply|>" == rendered.text
    assert [256, 259, *b"hi", 260] == list(rendered.token_ids)
