from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DraftSource(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DRAFT_SOURCE_UNSPECIFIED: _ClassVar[DraftSource]
    DRAFT_SOURCE_SEPARATE: _ClassVar[DraftSource]
    DRAFT_SOURCE_EMBEDDED: _ClassVar[DraftSource]
DRAFT_SOURCE_UNSPECIFIED: DraftSource
DRAFT_SOURCE_SEPARATE: DraftSource
DRAFT_SOURCE_EMBEDDED: DraftSource

class SpeculativeCapability(_message.Message):
    __slots__ = ("unavailable", "declared", "ready", "unsupported")
    class Unavailable(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    class Declared(_message.Message):
        __slots__ = ("draft_source",)
        DRAFT_SOURCE_FIELD_NUMBER: _ClassVar[int]
        draft_source: DraftSource
        def __init__(self, draft_source: _Optional[_Union[DraftSource, str]] = ...) -> None: ...
    class Ready(_message.Message):
        __slots__ = ("draft_source",)
        DRAFT_SOURCE_FIELD_NUMBER: _ClassVar[int]
        draft_source: DraftSource
        def __init__(self, draft_source: _Optional[_Union[DraftSource, str]] = ...) -> None: ...
    class Unsupported(_message.Message):
        __slots__ = ("draft_source", "architecture")
        DRAFT_SOURCE_FIELD_NUMBER: _ClassVar[int]
        ARCHITECTURE_FIELD_NUMBER: _ClassVar[int]
        draft_source: DraftSource
        architecture: str
        def __init__(self, draft_source: _Optional[_Union[DraftSource, str]] = ..., architecture: _Optional[str] = ...) -> None: ...
    UNAVAILABLE_FIELD_NUMBER: _ClassVar[int]
    DECLARED_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    UNSUPPORTED_FIELD_NUMBER: _ClassVar[int]
    unavailable: SpeculativeCapability.Unavailable
    declared: SpeculativeCapability.Declared
    ready: SpeculativeCapability.Ready
    unsupported: SpeculativeCapability.Unsupported
    def __init__(self, unavailable: _Optional[_Union[SpeculativeCapability.Unavailable, _Mapping]] = ..., declared: _Optional[_Union[SpeculativeCapability.Declared, _Mapping]] = ..., ready: _Optional[_Union[SpeculativeCapability.Ready, _Mapping]] = ..., unsupported: _Optional[_Union[SpeculativeCapability.Unsupported, _Mapping]] = ...) -> None: ...
