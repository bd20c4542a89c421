from outrider.v1 import capability_pb2 as _capability_pb2
from outrider.v1 import chat_pb2 as _chat_pb2
from outrider.v1 import settings_pb2 as _settings_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Model(_message.Message):
    __slots__ = ("name", "architecture", "engine", "weights", "tokenizer_fingerprint", "vocabulary_size", "eos_token_ids", "has_chat_template", "speculative_capability", "proposers", "limits", "default_settings", "bit_exact")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ARCHITECTURE_FIELD_NUMBER: _ClassVar[int]
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    TOKENIZER_FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    VOCABULARY_SIZE_FIELD_NUMBER: _ClassVar[int]
    EOS_TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    HAS_CHAT_TEMPLATE_FIELD_NUMBER: _ClassVar[int]
    SPECULATIVE_CAPABILITY_FIELD_NUMBER: _ClassVar[int]
    PROPOSERS_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    DEFAULT_SETTINGS_FIELD_NUMBER: _ClassVar[int]
    BIT_EXACT_FIELD_NUMBER: _ClassVar[int]
    name: str
    architecture: str
    engine: str
    weights: str
    tokenizer_fingerprint: bytes
    vocabulary_size: int
    eos_token_ids: _containers.RepeatedScalarFieldContainer[int]
    has_chat_template: bool
    speculative_capability: _capability_pb2.SpeculativeCapability
    proposers: _containers.RepeatedCompositeFieldContainer[Proposer]
    limits: ModelLimits
    default_settings: _settings_pb2.GenerationSettings
    bit_exact: bool
    def __init__(self, name: _Optional[str] = ..., architecture: _Optional[str] = ..., engine: _Optional[str] = ..., weights: _Optional[str] = ..., tokenizer_fingerprint: _Optional[bytes] = ..., vocabulary_size: _Optional[int] = ..., eos_token_ids: _Optional[_Iterable[int]] = ..., has_chat_template: bool = ..., speculative_capability: _Optional[_Union[_capability_pb2.SpeculativeCapability, _Mapping]] = ..., proposers: _Optional[_Iterable[_Union[Proposer, _Mapping]]] = ..., limits: _Optional[_Union[ModelLimits, _Mapping]] = ..., default_settings: _Optional[_Union[_settings_pb2.GenerationSettings, _Mapping]] = ..., bit_exact: bool = ...) -> None: ...

class Proposer(_message.Message):
    __slots__ = ("name", "mode", "max_speculative_tokens", "draft_source")
    NAME_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    MAX_SPECULATIVE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    DRAFT_SOURCE_FIELD_NUMBER: _ClassVar[int]
    name: str
    mode: _settings_pb2.SpeculationMode
    max_speculative_tokens: int
    draft_source: _capability_pb2.DraftSource
    def __init__(self, name: _Optional[str] = ..., mode: _Optional[_Union[_settings_pb2.SpeculationMode, str]] = ..., max_speculative_tokens: _Optional[int] = ..., draft_source: _Optional[_Union[_capability_pb2.DraftSource, str]] = ...) -> None: ...

class ModelLimits(_message.Message):
    __slots__ = ("max_context", "max_prompt_tokens", "max_speculative_tokens", "max_logprobs", "max_stops", "max_lanes", "max_queued_requests", "max_message_bytes")
    MAX_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    MAX_PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_SPECULATIVE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    MAX_STOPS_FIELD_NUMBER: _ClassVar[int]
    MAX_LANES_FIELD_NUMBER: _ClassVar[int]
    MAX_QUEUED_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    MAX_MESSAGE_BYTES_FIELD_NUMBER: _ClassVar[int]
    max_context: int
    max_prompt_tokens: int
    max_speculative_tokens: int
    max_logprobs: int
    max_stops: int
    max_lanes: int
    max_queued_requests: int
    max_message_bytes: int
    def __init__(self, max_context: _Optional[int] = ..., max_prompt_tokens: _Optional[int] = ..., max_speculative_tokens: _Optional[int] = ..., max_logprobs: _Optional[int] = ..., max_stops: _Optional[int] = ..., max_lanes: _Optional[int] = ..., max_queued_requests: _Optional[int] = ..., max_message_bytes: _Optional[int] = ...) -> None: ...

class ListModelsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListModelsResponse(_message.Message):
    __slots__ = ("models",)
    MODELS_FIELD_NUMBER: _ClassVar[int]
    models: _containers.RepeatedCompositeFieldContainer[Model]
    def __init__(self, models: _Optional[_Iterable[_Union[Model, _Mapping]]] = ...) -> None: ...

class GetModelRequest(_message.Message):
    __slots__ = ("model",)
    MODEL_FIELD_NUMBER: _ClassVar[int]
    model: str
    def __init__(self, model: _Optional[str] = ...) -> None: ...

class GetModelResponse(_message.Message):
    __slots__ = ("model",)
    MODEL_FIELD_NUMBER: _ClassVar[int]
    model: Model
    def __init__(self, model: _Optional[_Union[Model, _Mapping]] = ...) -> None: ...

class TokenizeRequest(_message.Message):
    __slots__ = ("model", "text", "add_special_tokens")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    ADD_SPECIAL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    model: str
    text: str
    add_special_tokens: bool
    def __init__(self, model: _Optional[str] = ..., text: _Optional[str] = ..., add_special_tokens: bool = ...) -> None: ...

class TokenizeResponse(_message.Message):
    __slots__ = ("token_ids",)
    TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    token_ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, token_ids: _Optional[_Iterable[int]] = ...) -> None: ...

class DetokenizeRequest(_message.Message):
    __slots__ = ("model", "token_ids", "skip_special_tokens")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    SKIP_SPECIAL_TOKENS_FIELD_NUMBER: _ClassVar[int]
    model: str
    token_ids: _containers.RepeatedScalarFieldContainer[int]
    skip_special_tokens: bool
    def __init__(self, model: _Optional[str] = ..., token_ids: _Optional[_Iterable[int]] = ..., skip_special_tokens: bool = ...) -> None: ...

class DetokenizeResponse(_message.Message):
    __slots__ = ("text",)
    TEXT_FIELD_NUMBER: _ClassVar[int]
    text: str
    def __init__(self, text: _Optional[str] = ...) -> None: ...

class RenderChatRequest(_message.Message):
    __slots__ = ("model", "chat")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    CHAT_FIELD_NUMBER: _ClassVar[int]
    model: str
    chat: _chat_pb2.Chat
    def __init__(self, model: _Optional[str] = ..., chat: _Optional[_Union[_chat_pb2.Chat, _Mapping]] = ...) -> None: ...

class RenderChatResponse(_message.Message):
    __slots__ = ("text", "token_ids")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    text: str
    token_ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, text: _Optional[str] = ..., token_ids: _Optional[_Iterable[int]] = ...) -> None: ...
