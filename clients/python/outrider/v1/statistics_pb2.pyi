import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ExecutionTopology(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EXECUTION_TOPOLOGY_UNSPECIFIED: _ClassVar[ExecutionTopology]
    EXECUTION_TOPOLOGY_SINGLE: _ClassVar[ExecutionTopology]
    EXECUTION_TOPOLOGY_SAME_DEVICE_SPLIT: _ClassVar[ExecutionTopology]
    EXECUTION_TOPOLOGY_CROSS_DEVICE_SPLIT: _ClassVar[ExecutionTopology]

class CompletionCancellationMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COMPLETION_CANCELLATION_MODE_UNSPECIFIED: _ClassVar[CompletionCancellationMode]
    COMPLETION_CANCELLATION_MODE_NATIVE_CANCEL: _ClassVar[CompletionCancellationMode]
    COMPLETION_CANCELLATION_MODE_QUARANTINE_UNTIL_COMPLETE: _ClassVar[CompletionCancellationMode]
EXECUTION_TOPOLOGY_UNSPECIFIED: ExecutionTopology
EXECUTION_TOPOLOGY_SINGLE: ExecutionTopology
EXECUTION_TOPOLOGY_SAME_DEVICE_SPLIT: ExecutionTopology
EXECUTION_TOPOLOGY_CROSS_DEVICE_SPLIT: ExecutionTopology
COMPLETION_CANCELLATION_MODE_UNSPECIFIED: CompletionCancellationMode
COMPLETION_CANCELLATION_MODE_NATIVE_CANCEL: CompletionCancellationMode
COMPLETION_CANCELLATION_MODE_QUARANTINE_UNTIL_COMPLETE: CompletionCancellationMode

class RequestStatistics(_message.Message):
    __slots__ = ("execution_topology", "target_tokens", "draft_tokens", "accepted_tokens", "accept_rate", "judged_tokens", "acceptance_rate", "rounds", "accept_lens", "emitted_tokens", "optimistic_draft_tokens", "optimistic_draft_blocks", "reused_optimistic_tokens", "reused_optimistic_blocks", "consumed_optimistic_tokens", "discarded_optimistic_tokens", "discarded_optimistic_blocks", "optimistic_target_bonus_tokens", "optimistic_bonus_matches", "optimistic_bonus_mismatches", "adaptive_lookahead_disabled", "optimistic_draft_time", "verification_in_flight_time", "component_timings_collected", "draft_context_time", "draft_assistant_time", "draft_head_time", "target_verification_time", "scheduler_turns", "cross_request_draft_opportunities", "plain_steps", "replayed_tokens", "elapsed")
    EXECUTION_TOPOLOGY_FIELD_NUMBER: _ClassVar[int]
    TARGET_TOKENS_FIELD_NUMBER: _ClassVar[int]
    DRAFT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    ACCEPT_RATE_FIELD_NUMBER: _ClassVar[int]
    JUDGED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    ACCEPTANCE_RATE_FIELD_NUMBER: _ClassVar[int]
    ROUNDS_FIELD_NUMBER: _ClassVar[int]
    ACCEPT_LENS_FIELD_NUMBER: _ClassVar[int]
    EMITTED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OPTIMISTIC_DRAFT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OPTIMISTIC_DRAFT_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    REUSED_OPTIMISTIC_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REUSED_OPTIMISTIC_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    CONSUMED_OPTIMISTIC_TOKENS_FIELD_NUMBER: _ClassVar[int]
    DISCARDED_OPTIMISTIC_TOKENS_FIELD_NUMBER: _ClassVar[int]
    DISCARDED_OPTIMISTIC_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    OPTIMISTIC_TARGET_BONUS_TOKENS_FIELD_NUMBER: _ClassVar[int]
    OPTIMISTIC_BONUS_MATCHES_FIELD_NUMBER: _ClassVar[int]
    OPTIMISTIC_BONUS_MISMATCHES_FIELD_NUMBER: _ClassVar[int]
    ADAPTIVE_LOOKAHEAD_DISABLED_FIELD_NUMBER: _ClassVar[int]
    OPTIMISTIC_DRAFT_TIME_FIELD_NUMBER: _ClassVar[int]
    VERIFICATION_IN_FLIGHT_TIME_FIELD_NUMBER: _ClassVar[int]
    COMPONENT_TIMINGS_COLLECTED_FIELD_NUMBER: _ClassVar[int]
    DRAFT_CONTEXT_TIME_FIELD_NUMBER: _ClassVar[int]
    DRAFT_ASSISTANT_TIME_FIELD_NUMBER: _ClassVar[int]
    DRAFT_HEAD_TIME_FIELD_NUMBER: _ClassVar[int]
    TARGET_VERIFICATION_TIME_FIELD_NUMBER: _ClassVar[int]
    SCHEDULER_TURNS_FIELD_NUMBER: _ClassVar[int]
    CROSS_REQUEST_DRAFT_OPPORTUNITIES_FIELD_NUMBER: _ClassVar[int]
    PLAIN_STEPS_FIELD_NUMBER: _ClassVar[int]
    REPLAYED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    ELAPSED_FIELD_NUMBER: _ClassVar[int]
    execution_topology: ExecutionTopology
    target_tokens: int
    draft_tokens: int
    accepted_tokens: int
    accept_rate: float
    judged_tokens: int
    acceptance_rate: float
    rounds: int
    accept_lens: _containers.RepeatedScalarFieldContainer[int]
    emitted_tokens: int
    optimistic_draft_tokens: int
    optimistic_draft_blocks: int
    reused_optimistic_tokens: int
    reused_optimistic_blocks: int
    consumed_optimistic_tokens: int
    discarded_optimistic_tokens: int
    discarded_optimistic_blocks: int
    optimistic_target_bonus_tokens: int
    optimistic_bonus_matches: int
    optimistic_bonus_mismatches: int
    adaptive_lookahead_disabled: bool
    optimistic_draft_time: _duration_pb2.Duration
    verification_in_flight_time: _duration_pb2.Duration
    component_timings_collected: bool
    draft_context_time: _duration_pb2.Duration
    draft_assistant_time: _duration_pb2.Duration
    draft_head_time: _duration_pb2.Duration
    target_verification_time: _duration_pb2.Duration
    scheduler_turns: int
    cross_request_draft_opportunities: int
    plain_steps: int
    replayed_tokens: int
    elapsed: _duration_pb2.Duration
    def __init__(self, execution_topology: _Optional[_Union[ExecutionTopology, str]] = ..., target_tokens: _Optional[int] = ..., draft_tokens: _Optional[int] = ..., accepted_tokens: _Optional[int] = ..., accept_rate: _Optional[float] = ..., judged_tokens: _Optional[int] = ..., acceptance_rate: _Optional[float] = ..., rounds: _Optional[int] = ..., accept_lens: _Optional[_Iterable[int]] = ..., emitted_tokens: _Optional[int] = ..., optimistic_draft_tokens: _Optional[int] = ..., optimistic_draft_blocks: _Optional[int] = ..., reused_optimistic_tokens: _Optional[int] = ..., reused_optimistic_blocks: _Optional[int] = ..., consumed_optimistic_tokens: _Optional[int] = ..., discarded_optimistic_tokens: _Optional[int] = ..., discarded_optimistic_blocks: _Optional[int] = ..., optimistic_target_bonus_tokens: _Optional[int] = ..., optimistic_bonus_matches: _Optional[int] = ..., optimistic_bonus_mismatches: _Optional[int] = ..., adaptive_lookahead_disabled: bool = ..., optimistic_draft_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., verification_in_flight_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., component_timings_collected: bool = ..., draft_context_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., draft_assistant_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., draft_head_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., target_verification_time: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., scheduler_turns: _Optional[int] = ..., cross_request_draft_opportunities: _Optional[int] = ..., plain_steps: _Optional[int] = ..., replayed_tokens: _Optional[int] = ..., elapsed: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class SchedulerStatistics(_message.Message):
    __slots__ = ("execution_topology", "turns", "cross_request_draft_opportunities", "peak_in_flight_verifications", "peak_optimistic_branches", "passes", "prefill_passes", "draft_passes", "verification_passes", "lanes_verified", "rounds", "plain_steps", "draft_tokens", "accepted_tokens", "emitted_tokens", "requests_completed", "requests_failed", "requests_cancelled", "active_lanes", "queued_requests")
    EXECUTION_TOPOLOGY_FIELD_NUMBER: _ClassVar[int]
    TURNS_FIELD_NUMBER: _ClassVar[int]
    CROSS_REQUEST_DRAFT_OPPORTUNITIES_FIELD_NUMBER: _ClassVar[int]
    PEAK_IN_FLIGHT_VERIFICATIONS_FIELD_NUMBER: _ClassVar[int]
    PEAK_OPTIMISTIC_BRANCHES_FIELD_NUMBER: _ClassVar[int]
    PASSES_FIELD_NUMBER: _ClassVar[int]
    PREFILL_PASSES_FIELD_NUMBER: _ClassVar[int]
    DRAFT_PASSES_FIELD_NUMBER: _ClassVar[int]
    VERIFICATION_PASSES_FIELD_NUMBER: _ClassVar[int]
    LANES_VERIFIED_FIELD_NUMBER: _ClassVar[int]
    ROUNDS_FIELD_NUMBER: _ClassVar[int]
    PLAIN_STEPS_FIELD_NUMBER: _ClassVar[int]
    DRAFT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    ACCEPTED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    EMITTED_TOKENS_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_COMPLETED_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FAILED_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_CANCELLED_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_LANES_FIELD_NUMBER: _ClassVar[int]
    QUEUED_REQUESTS_FIELD_NUMBER: _ClassVar[int]
    execution_topology: ExecutionTopology
    turns: int
    cross_request_draft_opportunities: int
    peak_in_flight_verifications: int
    peak_optimistic_branches: int
    passes: int
    prefill_passes: int
    draft_passes: int
    verification_passes: int
    lanes_verified: int
    rounds: int
    plain_steps: int
    draft_tokens: int
    accepted_tokens: int
    emitted_tokens: int
    requests_completed: int
    requests_failed: int
    requests_cancelled: int
    active_lanes: int
    queued_requests: int
    def __init__(self, execution_topology: _Optional[_Union[ExecutionTopology, str]] = ..., turns: _Optional[int] = ..., cross_request_draft_opportunities: _Optional[int] = ..., peak_in_flight_verifications: _Optional[int] = ..., peak_optimistic_branches: _Optional[int] = ..., passes: _Optional[int] = ..., prefill_passes: _Optional[int] = ..., draft_passes: _Optional[int] = ..., verification_passes: _Optional[int] = ..., lanes_verified: _Optional[int] = ..., rounds: _Optional[int] = ..., plain_steps: _Optional[int] = ..., draft_tokens: _Optional[int] = ..., accepted_tokens: _Optional[int] = ..., emitted_tokens: _Optional[int] = ..., requests_completed: _Optional[int] = ..., requests_failed: _Optional[int] = ..., requests_cancelled: _Optional[int] = ..., active_lanes: _Optional[int] = ..., queued_requests: _Optional[int] = ...) -> None: ...

class SchedulerOptions(_message.Message):
    __slots__ = ("max_in_flight_verifications", "max_optimistic_branches", "lookahead_blocks", "adaptive_lookahead", "adaptive_lookahead_min_blocks", "completion_timeout_milliseconds", "completion_cancellation")
    MAX_IN_FLIGHT_VERIFICATIONS_FIELD_NUMBER: _ClassVar[int]
    MAX_OPTIMISTIC_BRANCHES_FIELD_NUMBER: _ClassVar[int]
    LOOKAHEAD_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    ADAPTIVE_LOOKAHEAD_FIELD_NUMBER: _ClassVar[int]
    ADAPTIVE_LOOKAHEAD_MIN_BLOCKS_FIELD_NUMBER: _ClassVar[int]
    COMPLETION_TIMEOUT_MILLISECONDS_FIELD_NUMBER: _ClassVar[int]
    COMPLETION_CANCELLATION_FIELD_NUMBER: _ClassVar[int]
    max_in_flight_verifications: int
    max_optimistic_branches: int
    lookahead_blocks: int
    adaptive_lookahead: bool
    adaptive_lookahead_min_blocks: int
    completion_timeout_milliseconds: int
    completion_cancellation: CompletionCancellationMode
    def __init__(self, max_in_flight_verifications: _Optional[int] = ..., max_optimistic_branches: _Optional[int] = ..., lookahead_blocks: _Optional[int] = ..., adaptive_lookahead: bool = ..., adaptive_lookahead_min_blocks: _Optional[int] = ..., completion_timeout_milliseconds: _Optional[int] = ..., completion_cancellation: _Optional[_Union[CompletionCancellationMode, str]] = ...) -> None: ...
