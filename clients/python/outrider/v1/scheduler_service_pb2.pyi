import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from outrider.v1 import statistics_pb2 as _statistics_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetStatisticsRequest(_message.Message):
    __slots__ = ("model",)
    MODEL_FIELD_NUMBER: _ClassVar[int]
    model: str
    def __init__(self, model: _Optional[str] = ...) -> None: ...

class GetStatisticsResponse(_message.Message):
    __slots__ = ("statistics", "options")
    STATISTICS_FIELD_NUMBER: _ClassVar[int]
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    statistics: _statistics_pb2.SchedulerStatistics
    options: _statistics_pb2.SchedulerOptions
    def __init__(self, statistics: _Optional[_Union[_statistics_pb2.SchedulerStatistics, _Mapping]] = ..., options: _Optional[_Union[_statistics_pb2.SchedulerOptions, _Mapping]] = ...) -> None: ...

class WatchStatisticsRequest(_message.Message):
    __slots__ = ("model", "interval")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    INTERVAL_FIELD_NUMBER: _ClassVar[int]
    model: str
    interval: _duration_pb2.Duration
    def __init__(self, model: _Optional[str] = ..., interval: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class WatchStatisticsResponse(_message.Message):
    __slots__ = ("statistics",)
    STATISTICS_FIELD_NUMBER: _ClassVar[int]
    statistics: _statistics_pb2.SchedulerStatistics
    def __init__(self, statistics: _Optional[_Union[_statistics_pb2.SchedulerStatistics, _Mapping]] = ...) -> None: ...

class GetLoadRequest(_message.Message):
    __slots__ = ("model",)
    MODEL_FIELD_NUMBER: _ClassVar[int]
    model: str
    def __init__(self, model: _Optional[str] = ...) -> None: ...

class GetLoadResponse(_message.Message):
    __slots__ = ("active_lanes", "max_lanes", "queued_requests", "max_queued_requests", "kv_cache_tokens", "max_kv_cache_tokens")
    ACTIVE_LANES_FIELD_NUMBER: _ClassVar[int]
    MAX_LANES_FIELD_NUMBER: _ClassVar[int]
    QUEUED_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    MAX_QUEUED_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    KV_CACHE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_KV_CACHE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    active_lanes: int
    max_lanes: int
    queued_requests: int
    max_queued_requests: int
    kv_cache_tokens: int
    max_kv_cache_tokens: int
    def __init__(self, active_lanes: _Optional[int] = ..., max_lanes: _Optional[int] = ..., queued_requests: _Optional[int] = ..., max_queued_requests: _Optional[int] = ..., kv_cache_tokens: _Optional[int] = ..., max_kv_cache_tokens: _Optional[int] = ...) -> None: ...
