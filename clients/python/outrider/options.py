"""What a request may say beside its prompt, and the prompts there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from outrider.chats import Chat, Tool, ToolChoice

Mode = Literal["auto", "none", "prompt_lookup", "draft_model", "mtp", "eagle3", "shared_kv"]
Order = Literal["temperature_first", "temperature_last"]
Prompt = str | Sequence[int] | Chat


class Dry(TypedDict, total=False):
    """Parts of `DrySettings`; breakers may be an empty list, so that nothing ends a run."""

    multiplier: float
    base: float
    allowed_length: int
    sequence_breakers: Sequence[str]


class Xtc(TypedDict, total=False):
    """Parts of `XtcSettings`."""

    probability: float
    threshold: float


class Mirostat(TypedDict, total=False):
    """Parts of `MirostatSettings`."""

    version: Literal[1, 2]
    tau: float
    eta: float


class Options(TypedDict, total=False):
    """The keyword arguments of every request; an absent one leaves the choice to the server.

    The sampling fields mean what `GenerationSettings` of the contract says, and
    the last four what `SpeculationSettings` says. `timeout` is the deadline of
    the call in seconds, at most a year. `stop` is a text or a token id, or several.
    `json`, `json_schema`, `regex`, `lark` and `choice` say what the output must match; at
    most one of them is given. A schema is its text, or what it spells.
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
    dry: Dry
    xtc: Xtc
    mirostat: Mirostat
    sampler_order: Order
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

    json: bool
    json_schema: str | Mapping[str, Any]
    regex: str
    lark: str
    choice: Sequence[str]

    speculation: Mode
    proposer: str
    num_speculative_tokens: int
    lookahead: bool


class ChatOptions(Options, total=False):
    """Those of a conversation: what a `Chat` holds beside its messages, too."""

    tools: Sequence[Tool | Mapping[str, Any]]
    tool_choice: ToolChoice
    parallel_tool_calls: bool
    template_arguments: Mapping[str, Any]
    dialect: str
