import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from outrider.v1 import chat_pb2 as _chat_pb2
from outrider.v1 import settings_pb2 as _settings_pb2
from outrider.v1 import statistics_pb2 as _statistics_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SpeculationOffReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SPECULATION_OFF_REASON_UNSPECIFIED: _ClassVar[SpeculationOffReason]
    SPECULATION_OFF_REASON_REQUESTED: _ClassVar[SpeculationOffReason]
    SPECULATION_OFF_REASON_NO_PROPOSER: _ClassVar[SpeculationOffReason]
    SPECULATION_OFF_REASON_SETTING: _ClassVar[SpeculationOffReason]
    SPECULATION_OFF_REASON_UNPROFITABLE: _ClassVar[SpeculationOffReason]

class TokenSource(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TOKEN_SOURCE_UNSPECIFIED: _ClassVar[TokenSource]
    TOKEN_SOURCE_PREFILL: _ClassVar[TokenSource]
    TOKEN_SOURCE_ACCEPTED: _ClassVar[TokenSource]
    TOKEN_SOURCE_REPLACEMENT: _ClassVar[TokenSource]
    TOKEN_SOURCE_BONUS: _ClassVar[TokenSource]
    TOKEN_SOURCE_PLAIN: _ClassVar[TokenSource]

class FinishReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FINISH_REASON_UNSPECIFIED: _ClassVar[FinishReason]
    FINISH_REASON_EOS: _ClassVar[FinishReason]
    FINISH_REASON_STOP_SEQUENCE: _ClassVar[FinishReason]
    FINISH_REASON_GRAMMAR_COMPLETE: _ClassVar[FinishReason]
    FINISH_REASON_MAX_TOKENS: _ClassVar[FinishReason]
    FINISH_REASON_CONTEXT_LENGTH: _ClassVar[FinishReason]
    FINISH_REASON_CANCELLED: _ClassVar[FinishReason]
SPECULATION_OFF_REASON_UNSPECIFIED: SpeculationOffReason
SPECULATION_OFF_REASON_REQUESTED: SpeculationOffReason
SPECULATION_OFF_REASON_NO_PROPOSER: SpeculationOffReason
SPECULATION_OFF_REASON_SETTING: SpeculationOffReason
SPECULATION_OFF_REASON_UNPROFITABLE: SpeculationOffReason
TOKEN_SOURCE_UNSPECIFIED: TokenSource
TOKEN_SOURCE_PREFILL: TokenSource
TOKEN_SOURCE_ACCEPTED: TokenSource
TOKEN_SOURCE_REPLACEMENT: TokenSource
TOKEN_SOURCE_BONUS: TokenSource
TOKEN_SOURCE_PLAIN: TokenSource
FINISH_REASON_UNSPECIFIED: FinishReason
FINISH_REASON_EOS: FinishReason
FINISH_REASON_STOP_SEQUENCE: FinishReason
FINISH_REASON_GRAMMAR_COMPLETE: FinishReason
FINISH_REASON_MAX_TOKENS: FinishReason
FINISH_REASON_CONTEXT_LENGTH: FinishReason
FINISH_REASON_CANCELLED: FinishReason

class Generation(_message.Message):
    __slots__ = ("model", "text", "token_ids", "chat", "settings", "speculation", "timeout", "priority")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    CHAT_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    SPECULATION_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    model: str
    text: str
    token_ids: TokenIds
    chat: _chat_pb2.Chat
    settings: _settings_pb2.GenerationSettings
    speculation: _settings_pb2.SpeculationSettings
    timeout: _duration_pb2.Duration
    priority: int
    def __init__(self, model: _Optional[str] = ..., text: _Optional[str] = ..., token_ids: _Optional[_Union[TokenIds, _Mapping]] = ..., chat: _Optional[_Union[_chat_pb2.Chat, _Mapping]] = ..., settings: _Optional[_Union[_settings_pb2.GenerationSettings, _Mapping]] = ..., speculation: _Optional[_Union[_settings_pb2.SpeculationSettings, _Mapping]] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., priority: _Optional[int] = ...) -> None: ...

class TokenIds(_message.Message):
    __slots__ = ("ids",)
    IDS_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, ids: _Optional[_Iterable[int]] = ...) -> None: ...

class Admitted(_message.Message):
    __slots__ = ("request_id", "model", "settings", "speculation", "prompt_tokens", "timeout", "priority")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    SPECULATION_FIELD_NUMBER: _ClassVar[int]
    PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    model: str
    settings: _settings_pb2.GenerationSettings
    speculation: ResolvedSpeculation
    prompt_tokens: int
    timeout: _duration_pb2.Duration
    priority: int
    def __init__(self, request_id: _Optional[str] = ..., model: _Optional[str] = ..., settings: _Optional[_Union[_settings_pb2.GenerationSettings, _Mapping]] = ..., speculation: _Optional[_Union[ResolvedSpeculation, _Mapping]] = ..., prompt_tokens: _Optional[int] = ..., timeout: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., priority: _Optional[int] = ...) -> None: ...

class ResolvedSpeculation(_message.Message):
    __slots__ = ("mode", "proposer", "num_speculative_tokens", "lookahead", "adaptive", "off_reason", "off_detail")
    MODE_FIELD_NUMBER: _ClassVar[int]
    PROPOSER_FIELD_NUMBER: _ClassVar[int]
    NUM_SPECULATIVE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    LOOKAHEAD_FIELD_NUMBER: _ClassVar[int]
    ADAPTIVE_FIELD_NUMBER: _ClassVar[int]
    OFF_REASON_FIELD_NUMBER: _ClassVar[int]
    OFF_DETAIL_FIELD_NUMBER: _ClassVar[int]
    mode: _settings_pb2.SpeculationMode
    proposer: str
    num_speculative_tokens: int
    lookahead: bool
    adaptive: bool
    off_reason: SpeculationOffReason
    off_detail: str
    def __init__(self, mode: _Optional[_Union[_settings_pb2.SpeculationMode, str]] = ..., proposer: _Optional[str] = ..., num_speculative_tokens: _Optional[int] = ..., lookahead: bool = ..., adaptive: bool = ..., off_reason: _Optional[_Union[SpeculationOffReason, str]] = ..., off_detail: _Optional[str] = ...) -> None: ...

class Round(_message.Message):
    __slots__ = ("tokens", "draft_tokens", "judged_tokens", "accepted_tokens", "events", "prompt_logprobs")
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    DRAFT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    JUDGED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    PROMPT_LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    tokens: CommittedTokens
    draft_tokens: int
    judged_tokens: int
    accepted_tokens: int
    events: _containers.RepeatedCompositeFieldContainer[SemanticEvent]
    prompt_logprobs: PromptLogprobs
    def __init__(self, tokens: _Optional[_Union[CommittedTokens, _Mapping]] = ..., draft_tokens: _Optional[int] = ..., judged_tokens: _Optional[int] = ..., accepted_tokens: _Optional[int] = ..., events: _Optional[_Iterable[_Union[SemanticEvent, _Mapping]]] = ..., prompt_logprobs: _Optional[_Union[PromptLogprobs, _Mapping]] = ...) -> None: ...

class CommittedTokens(_message.Message):
    __slots__ = ("first_position", "token_ids", "sources", "logprobs", "alternatives")
    FIRST_POSITION_FIELD_NUMBER: _ClassVar[int]
    TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    SOURCES_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    ALTERNATIVES_FIELD_NUMBER: _ClassVar[int]
    first_position: int
    token_ids: _containers.RepeatedScalarFieldContainer[int]
    sources: _containers.RepeatedScalarFieldContainer[TokenSource]
    logprobs: _containers.RepeatedScalarFieldContainer[float]
    alternatives: _containers.RepeatedCompositeFieldContainer[Alternatives]
    def __init__(self, first_position: _Optional[int] = ..., token_ids: _Optional[_Iterable[int]] = ..., sources: _Optional[_Iterable[_Union[TokenSource, str]]] = ..., logprobs: _Optional[_Iterable[float]] = ..., alternatives: _Optional[_Iterable[_Union[Alternatives, _Mapping]]] = ...) -> None: ...

class Alternatives(_message.Message):
    __slots__ = ("token_ids", "logprobs")
    TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    token_ids: _containers.RepeatedScalarFieldContainer[int]
    logprobs: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, token_ids: _Optional[_Iterable[int]] = ..., logprobs: _Optional[_Iterable[float]] = ...) -> None: ...

class PromptLogprobs(_message.Message):
    __slots__ = ("logprobs", "alternatives")
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    ALTERNATIVES_FIELD_NUMBER: _ClassVar[int]
    logprobs: _containers.RepeatedScalarFieldContainer[float]
    alternatives: _containers.RepeatedCompositeFieldContainer[Alternatives]
    def __init__(self, logprobs: _Optional[_Iterable[float]] = ..., alternatives: _Optional[_Iterable[_Union[Alternatives, _Mapping]]] = ...) -> None: ...

class SemanticEvent(_message.Message):
    __slots__ = ("reasoning_delta", "text_delta", "tool_call_start", "tool_arguments_delta", "tool_call_end", "finished")
    REASONING_DELTA_FIELD_NUMBER: _ClassVar[int]
    TEXT_DELTA_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_START_FIELD_NUMBER: _ClassVar[int]
    TOOL_ARGUMENTS_DELTA_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALL_END_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    reasoning_delta: str
    text_delta: str
    tool_call_start: ToolCallStart
    tool_arguments_delta: ToolArgumentsDelta
    tool_call_end: ToolCallEnd
    finished: OutputFinished
    def __init__(self, reasoning_delta: _Optional[str] = ..., text_delta: _Optional[str] = ..., tool_call_start: _Optional[_Union[ToolCallStart, _Mapping]] = ..., tool_arguments_delta: _Optional[_Union[ToolArgumentsDelta, _Mapping]] = ..., tool_call_end: _Optional[_Union[ToolCallEnd, _Mapping]] = ..., finished: _Optional[_Union[OutputFinished, _Mapping]] = ...) -> None: ...

class ToolCallStart(_message.Message):
    __slots__ = ("index", "id", "name")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    index: int
    id: str
    name: str
    def __init__(self, index: _Optional[int] = ..., id: _Optional[str] = ..., name: _Optional[str] = ...) -> None: ...

class ToolArgumentsDelta(_message.Message):
    __slots__ = ("index", "json_fragment")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    JSON_FRAGMENT_FIELD_NUMBER: _ClassVar[int]
    index: int
    json_fragment: str
    def __init__(self, index: _Optional[int] = ..., json_fragment: _Optional[str] = ...) -> None: ...

class ToolCallEnd(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class OutputFinished(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: FinishReason
    def __init__(self, reason: _Optional[_Union[FinishReason, str]] = ...) -> None: ...

class Finished(_message.Message):
    __slots__ = ("reason", "matched_stop", "usage", "statistics", "events")
    REASON_FIELD_NUMBER: _ClassVar[int]
    MATCHED_STOP_FIELD_NUMBER: _ClassVar[int]
    USAGE_FIELD_NUMBER: _ClassVar[int]
    STATISTICS_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    reason: FinishReason
    matched_stop: MatchedStop
    usage: Usage
    statistics: _statistics_pb2.RequestStatistics
    events: _containers.RepeatedCompositeFieldContainer[SemanticEvent]
    def __init__(self, reason: _Optional[_Union[FinishReason, str]] = ..., matched_stop: _Optional[_Union[MatchedStop, _Mapping]] = ..., usage: _Optional[_Union[Usage, _Mapping]] = ..., statistics: _Optional[_Union[_statistics_pb2.RequestStatistics, _Mapping]] = ..., events: _Optional[_Iterable[_Union[SemanticEvent, _Mapping]]] = ...) -> None: ...

class MatchedStop(_message.Message):
    __slots__ = ("index", "text", "token_id")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    index: int
    text: str
    token_id: int
    def __init__(self, index: _Optional[int] = ..., text: _Optional[str] = ..., token_id: _Optional[int] = ...) -> None: ...

class Usage(_message.Message):
    __slots__ = ("prompt_tokens", "completion_tokens", "cached_tokens")
    PROMPT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    COMPLETION_TOKENS_FIELD_NUMBER: _ClassVar[int]
    CACHED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    def __init__(self, prompt_tokens: _Optional[int] = ..., completion_tokens: _Optional[int] = ..., cached_tokens: _Optional[int] = ...) -> None: ...
