"""Models over gRPC: what is loaded, and text to tokens and back."""

from __future__ import annotations

from outrider.v1.model_service_pb2 import (
    DetokenizeRequest,
    DetokenizeResponse,
    GetModelRequest,
    GetModelResponse,
    ListModelsRequest,
    ListModelsResponse,
    Model,
    RenderChatRequest,
    RenderChatResponse,
    TokenizeRequest,
    TokenizeResponse,
)
from outrider.v1.model_service_pb2_grpc import ModelServiceServicer
from service.rpc.calls import Context
from service.rpc.chats import chat_prompt
from service.rpc.model_message import model_message
from service.rpc.validation import validate
from service.runtime.models import LoadedModel
from service.runtime.runtime import Runtime


class ModelService(ModelServiceServicer):
    """Describes a runtime's models; `max_message_bytes` is the server's limit."""

    def __init__(self, runtime: Runtime, max_message_bytes: int) -> None:
        self._runtime = runtime
        self._max_message_bytes = max_message_bytes

    async def ListModels(self, request: ListModelsRequest, context: Context) -> ListModelsResponse:
        del context
        validate(request)
        return ListModelsResponse(models=map(self._describe, self._runtime.models()))

    async def GetModel(self, request: GetModelRequest, context: Context) -> GetModelResponse:
        del context
        validate(request)
        return GetModelResponse(model=self._describe(self._runtime.model(request.model)))

    async def Tokenize(self, request: TokenizeRequest, context: Context) -> TokenizeResponse:
        del context
        validate(request)
        add = request.add_special_tokens if request.HasField("add_special_tokens") else True
        tokens, lost = await self._runtime.tokenize(
            request.model, request.text, add_special_tokens=add
        )
        return TokenizeResponse(token_ids=tokens, lost_characters=lost)

    async def Detokenize(self, request: DetokenizeRequest, context: Context) -> DetokenizeResponse:
        del context
        validate(request)
        skip = request.skip_special_tokens if request.HasField("skip_special_tokens") else True
        text = await self._runtime.detokenize(
            request.model, tuple(request.token_ids), skip_special_tokens=skip
        )
        return DetokenizeResponse(text=text)

    async def RenderChat(self, request: RenderChatRequest, context: Context) -> RenderChatResponse:
        del context
        validate(request)
        chat = chat_prompt(request.chat)
        text, tokens = await self._runtime.render_chat(request.model, chat)
        return RenderChatResponse(text=text, token_ids=tokens)

    def _describe(self, model: LoadedModel) -> Model:
        statistics = self._runtime.statistics(model.name)
        return model_message(model, statistics, self._max_message_bytes)
