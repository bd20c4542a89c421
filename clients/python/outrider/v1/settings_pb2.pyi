from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SamplerOrder(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SAMPLER_ORDER_UNSPECIFIED: _ClassVar[SamplerOrder]
    SAMPLER_ORDER_TEMPERATURE_FIRST: _ClassVar[SamplerOrder]
    SAMPLER_ORDER_TEMPERATURE_LAST: _ClassVar[SamplerOrder]

class SpeculationMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SPECULATION_MODE_UNSPECIFIED: _ClassVar[SpeculationMode]
    SPECULATION_MODE_AUTO: _ClassVar[SpeculationMode]
    SPECULATION_MODE_NONE: _ClassVar[SpeculationMode]
    SPECULATION_MODE_PROMPT_LOOKUP: _ClassVar[SpeculationMode]
    SPECULATION_MODE_DRAFT_MODEL: _ClassVar[SpeculationMode]
    SPECULATION_MODE_MTP: _ClassVar[SpeculationMode]
    SPECULATION_MODE_EAGLE3: _ClassVar[SpeculationMode]
    SPECULATION_MODE_SHARED_KV: _ClassVar[SpeculationMode]
SAMPLER_ORDER_UNSPECIFIED: SamplerOrder
SAMPLER_ORDER_TEMPERATURE_FIRST: SamplerOrder
SAMPLER_ORDER_TEMPERATURE_LAST: SamplerOrder
SPECULATION_MODE_UNSPECIFIED: SpeculationMode
SPECULATION_MODE_AUTO: SpeculationMode
SPECULATION_MODE_NONE: SpeculationMode
SPECULATION_MODE_PROMPT_LOOKUP: SpeculationMode
SPECULATION_MODE_DRAFT_MODEL: SpeculationMode
SPECULATION_MODE_MTP: SpeculationMode
SPECULATION_MODE_EAGLE3: SpeculationMode
SPECULATION_MODE_SHARED_KV: SpeculationMode

class GenerationSettings(_message.Message):
    __slots__ = ("do_sample", "temperature", "top_k", "top_p", "min_p", "top_a", "typical_p", "repetition_penalty", "repeat_last_n", "frequency_penalty", "presence_penalty", "dry", "xtc", "mirostat", "sampler_order", "logit_bias", "seed", "max_new_tokens", "min_new_tokens", "max_context", "stops", "include_stop", "stop_on_eos", "eos_token_id", "allowed_token_ids", "banned_token_ids", "logprobs", "prompt_logprobs", "constraint")
    class LogitBiasEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: int
        value: float
        def __init__(self, key: _Optional[int] = ..., value: _Optional[float] = ...) -> None: ...
    DO_SAMPLE_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    TOP_P_FIELD_NUMBER: _ClassVar[int]
    MIN_P_FIELD_NUMBER: _ClassVar[int]
    TOP_A_FIELD_NUMBER: _ClassVar[int]
    TYPICAL_P_FIELD_NUMBER: _ClassVar[int]
    REPETITION_PENALTY_FIELD_NUMBER: _ClassVar[int]
    REPEAT_LAST_N_FIELD_NUMBER: _ClassVar[int]
    FREQUENCY_PENALTY_FIELD_NUMBER: _ClassVar[int]
    PRESENCE_PENALTY_FIELD_NUMBER: _ClassVar[int]
    DRY_FIELD_NUMBER: _ClassVar[int]
    XTC_FIELD_NUMBER: _ClassVar[int]
    MIROSTAT_FIELD_NUMBER: _ClassVar[int]
    SAMPLER_ORDER_FIELD_NUMBER: _ClassVar[int]
    LOGIT_BIAS_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    MAX_NEW_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MIN_NEW_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_CONTEXT_FIELD_NUMBER: _ClassVar[int]
    STOPS_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_STOP_FIELD_NUMBER: _ClassVar[int]
    STOP_ON_EOS_FIELD_NUMBER: _ClassVar[int]
    EOS_TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    BANNED_TOKEN_IDS_FIELD_NUMBER: _ClassVar[int]
    LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    PROMPT_LOGPROBS_FIELD_NUMBER: _ClassVar[int]
    CONSTRAINT_FIELD_NUMBER: _ClassVar[int]
    do_sample: bool
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    top_a: float
    typical_p: float
    repetition_penalty: float
    repeat_last_n: int
    frequency_penalty: float
    presence_penalty: float
    dry: DrySettings
    xtc: XtcSettings
    mirostat: MirostatSettings
    sampler_order: SamplerOrder
    logit_bias: _containers.ScalarMap[int, float]
    seed: int
    max_new_tokens: int
    min_new_tokens: int
    max_context: int
    stops: _containers.RepeatedCompositeFieldContainer[Stop]
    include_stop: bool
    stop_on_eos: bool
    eos_token_id: int
    allowed_token_ids: _containers.RepeatedScalarFieldContainer[int]
    banned_token_ids: _containers.RepeatedScalarFieldContainer[int]
    logprobs: int
    prompt_logprobs: int
    constraint: Constraint
    def __init__(self, do_sample: bool = ..., temperature: _Optional[float] = ..., top_k: _Optional[int] = ..., top_p: _Optional[float] = ..., min_p: _Optional[float] = ..., top_a: _Optional[float] = ..., typical_p: _Optional[float] = ..., repetition_penalty: _Optional[float] = ..., repeat_last_n: _Optional[int] = ..., frequency_penalty: _Optional[float] = ..., presence_penalty: _Optional[float] = ..., dry: _Optional[_Union[DrySettings, _Mapping]] = ..., xtc: _Optional[_Union[XtcSettings, _Mapping]] = ..., mirostat: _Optional[_Union[MirostatSettings, _Mapping]] = ..., sampler_order: _Optional[_Union[SamplerOrder, str]] = ..., logit_bias: _Optional[_Mapping[int, float]] = ..., seed: _Optional[int] = ..., max_new_tokens: _Optional[int] = ..., min_new_tokens: _Optional[int] = ..., max_context: _Optional[int] = ..., stops: _Optional[_Iterable[_Union[Stop, _Mapping]]] = ..., include_stop: bool = ..., stop_on_eos: bool = ..., eos_token_id: _Optional[int] = ..., allowed_token_ids: _Optional[_Iterable[int]] = ..., banned_token_ids: _Optional[_Iterable[int]] = ..., logprobs: _Optional[int] = ..., prompt_logprobs: _Optional[int] = ..., constraint: _Optional[_Union[Constraint, _Mapping]] = ...) -> None: ...

class DrySettings(_message.Message):
    __slots__ = ("multiplier", "base", "allowed_length", "sequence_breakers")
    MULTIPLIER_FIELD_NUMBER: _ClassVar[int]
    BASE_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_LENGTH_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_BREAKERS_FIELD_NUMBER: _ClassVar[int]
    multiplier: float
    base: float
    allowed_length: int
    sequence_breakers: SequenceBreakers
    def __init__(self, multiplier: _Optional[float] = ..., base: _Optional[float] = ..., allowed_length: _Optional[int] = ..., sequence_breakers: _Optional[_Union[SequenceBreakers, _Mapping]] = ...) -> None: ...

class SequenceBreakers(_message.Message):
    __slots__ = ("texts",)
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    texts: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, texts: _Optional[_Iterable[str]] = ...) -> None: ...

class XtcSettings(_message.Message):
    __slots__ = ("probability", "threshold")
    PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    probability: float
    threshold: float
    def __init__(self, probability: _Optional[float] = ..., threshold: _Optional[float] = ...) -> None: ...

class MirostatSettings(_message.Message):
    __slots__ = ("version", "tau", "eta")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    TAU_FIELD_NUMBER: _ClassVar[int]
    ETA_FIELD_NUMBER: _ClassVar[int]
    version: int
    tau: float
    eta: float
    def __init__(self, version: _Optional[int] = ..., tau: _Optional[float] = ..., eta: _Optional[float] = ...) -> None: ...

class Stop(_message.Message):
    __slots__ = ("text", "token_id")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    text: str
    token_id: int
    def __init__(self, text: _Optional[str] = ..., token_id: _Optional[int] = ...) -> None: ...

class Constraint(_message.Message):
    __slots__ = ("json", "json_schema", "regex", "lark", "choice")
    class AnyJson(_message.Message):
        __slots__ = ()
        def __init__(self) -> None: ...
    class Choice(_message.Message):
        __slots__ = ("texts",)
        TEXTS_FIELD_NUMBER: _ClassVar[int]
        texts: _containers.RepeatedScalarFieldContainer[str]
        def __init__(self, texts: _Optional[_Iterable[str]] = ...) -> None: ...
    JSON_FIELD_NUMBER: _ClassVar[int]
    JSON_SCHEMA_FIELD_NUMBER: _ClassVar[int]
    REGEX_FIELD_NUMBER: _ClassVar[int]
    LARK_FIELD_NUMBER: _ClassVar[int]
    CHOICE_FIELD_NUMBER: _ClassVar[int]
    json: Constraint.AnyJson
    json_schema: str
    regex: str
    lark: str
    choice: Constraint.Choice
    def __init__(self, json: _Optional[_Union[Constraint.AnyJson, _Mapping]] = ..., json_schema: _Optional[str] = ..., regex: _Optional[str] = ..., lark: _Optional[str] = ..., choice: _Optional[_Union[Constraint.Choice, _Mapping]] = ...) -> None: ...

class SpeculationSettings(_message.Message):
    __slots__ = ("mode", "proposer", "num_speculative_tokens", "lookahead")
    MODE_FIELD_NUMBER: _ClassVar[int]
    PROPOSER_FIELD_NUMBER: _ClassVar[int]
    NUM_SPECULATIVE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    LOOKAHEAD_FIELD_NUMBER: _ClassVar[int]
    mode: SpeculationMode
    proposer: str
    num_speculative_tokens: int
    lookahead: bool
    def __init__(self, mode: _Optional[_Union[SpeculationMode, str]] = ..., proposer: _Optional[str] = ..., num_speculative_tokens: _Optional[int] = ..., lookahead: bool = ...) -> None: ...
