"""What a request may say beside its prompt, and the prompts there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

from outrider.v1 import settings_pb2

Mode = Literal["auto", "none", "prompt_lookup", "draft_model", "mtp", "eagle3", "shared_kv"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation; `role` is as the model's chat template knows it."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Chat:
    """A conversation as a prompt; mappings have the keys `role` and `content`."""

    messages: Sequence[Message | Mapping[str, str]]


Prompt = str | Sequence[int] | Chat


class Options(TypedDict, total=False):
    """The keyword arguments of every request; an absent one leaves the choice to the server.

    The sampling fields mean what `GenerationSettings` of the contract says, and
    the last four what `SpeculationSettings` says. `timeout` is the deadline of
    the call in seconds, at most a year. `stop` is a text or a token id, or several.
    """

    model: str
    request_id: str
    timeout: float
    priority: int
    component_timings: bool

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
    dry: settings_pb2.DrySettings
    xtc: settings_pb2.XtcSettings
    mirostat: settings_pb2.MirostatSettings
    sampler_order: settings_pb2.SamplerOrder.ValueType
    logit_bias: Mapping[int, float]
    seed: int
    max_new_tokens: int
    min_new_tokens: int
    max_context: int
    stop: str | int | Sequence[str | int]
    include_stop: bool
    stop_on_eos: bool
    eos_token_id: int
    allowed_token_ids: Sequence[int]
    banned_token_ids: Sequence[int]
    logprobs: int
    prompt_logprobs: int
    constraint: settings_pb2.Constraint

    speculation: Mode
    proposer: str
    num_speculative_tokens: int
    lookahead: bool
