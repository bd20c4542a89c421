from google.rpc import status_pb2 as _status_pb2
from outrider.v1 import chat_pb2 as _chat_pb2
from outrider.v1 import generation_pb2 as _generation_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GenerateRequest(_message.Message):
    __slots__ = ("request_id", "start", "cancel")
    class Cancel(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    CANCEL_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    start: _generation_pb2.Generation
    cancel: GenerateRequest.Cancel
    def __init__(self, request_id: _Optional[str] = ..., start: _Optional[_Union[_generation_pb2.Generation, _Mapping]] = ..., cancel: _Optional[_Union[GenerateRequest.Cancel, _Mapping]] = ...) -> None: ...

class GenerateResponse(_message.Message):
    __slots__ = ("request_id", "admitted", "round", "finished", "failed")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    ADMITTED_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    FAILED_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    admitted: _generation_pb2.Admitted
    round: _generation_pb2.Round
    finished: _generation_pb2.Finished
    failed: _status_pb2.Status
    def __init__(self, request_id: _Optional[str] = ..., admitted: _Optional[_Union[_generation_pb2.Admitted, _Mapping]] = ..., round: _Optional[_Union[_generation_pb2.Round, _Mapping]] = ..., finished: _Optional[_Union[_generation_pb2.Finished, _Mapping]] = ..., failed: _Optional[_Union[_status_pb2.Status, _Mapping]] = ...) -> None: ...

class StreamGenerateRequest(_message.Message):
    __slots__ = ("request_id", "generation")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    generation: _generation_pb2.Generation
    def __init__(self, request_id: _Optional[str] = ..., generation: _Optional[_Union[_generation_pb2.Generation, _Mapping]] = ...) -> None: ...

class StreamGenerateResponse(_message.Message):
    __slots__ = ("admitted", "round", "finished")
    ADMITTED_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    admitted: _generation_pb2.Admitted
    round: _generation_pb2.Round
    finished: _generation_pb2.Finished
    def __init__(self, admitted: _Optional[_Union[_generation_pb2.Admitted, _Mapping]] = ..., round: _Optional[_Union[_generation_pb2.Round, _Mapping]] = ..., finished: _Optional[_Union[_generation_pb2.Finished, _Mapping]] = ...) -> None: ...

class CompleteRequest(_message.Message):
    __slots__ = ("request_id", "generation")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    generation: _generation_pb2.Generation
    def __init__(self, request_id: _Optional[str] = ..., generation: _Optional[_Union[_generation_pb2.Generation, _Mapping]] = ...) -> None: ...

class CompleteResponse(_message.Message):
    __slots__ = ("admitted", "text", "reasoning", "tool_calls", "tokens", "prompt_logprobs", "finished")
    ADMITTED_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    REASONING_FIELD_NUMBER: _ClassVar[int]
    TOOL_CALLS_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    PROMPT_LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    admitted: _generation_pb2.Admitted
    text: str
    reasoning: str
    tool_calls: _containers.RepeatedCompositeFieldContainer[_chat_pb2.ToolCall]
    tokens: _generation_pb2.CommittedTokens
    prompt_logprobs: _generation_pb2.PromptLogprobs
    finished: _generation_pb2.Finished
    def __init__(self, admitted: _Optional[_Union[_generation_pb2.Admitted, _Mapping]] = ..., text: _Optional[str] = ..., reasoning: _Optional[str] = ..., tool_calls: _Optional[_Iterable[_Union[_chat_pb2.ToolCall, _Mapping]]] = ..., tokens: _Optional[_Union[_generation_pb2.CommittedTokens, _Mapping]] = ..., prompt_logprobs: _Optional[_Union[_generation_pb2.PromptLogprobs, _Mapping]] = ..., finished: _Optional[_Union[_generation_pb2.Finished, _Mapping]] = ...) -> None: ...
