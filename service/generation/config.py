"""Generation settings: checkpoint defaults, request overrides, and what they resolve to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TypeVar

from service.generation.sampling import (
    DrySettings,
    MirostatSettings,
    SamplerOrder,
    XtcSettings,
)
from service.generation.setting_rules import setting_errors

DEFAULT_MAX_NEW_TOKENS = 256
GREEDY_BELOW = 1e-5
"""A temperature this small leaves float32 only the likeliest token; it is taken as zero."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class GenerationOverrides:
    """Values that may each be absent: a checkpoint's defaults, or a request's overrides.

    An explicit zero is a value; None is absence.
    """

    do_sample: bool | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    top_a: float | None = None
    typical_p: float | None = None
    repetition_penalty: float | None = None
    repeat_last_n: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    dry: DrySettings | None = None
    xtc: XtcSettings | None = None
    mirostat: MirostatSettings | None = None
    sampler_order: SamplerOrder | None = None
    logit_bias: Mapping[int, float] | None = None
    allowed_token_ids: frozenset[int] | None = None
    banned_token_ids: frozenset[int] | None = None
    max_new_tokens: int | None = None
    min_new_tokens: int | None = None
    logprobs: int | None = None
    prompt_logprobs: int | None = None


@dataclass(frozen=True, slots=True)
class ResolvedGenerationConfig:
    """Settings with nothing left open, all of them validated.

    `repeat_last_n`: negative covers the whole history, zero none of it.
    `allowed_token_ids` None allows all. `max_new_tokens` is None where neither side
    declared a budget. `logprobs` and `prompt_logprobs` are numbers of
    alternatives, None where no log-probabilities are wanted. What is off is None.
    """

    do_sample: bool
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repetition_penalty: float
    repeat_last_n: int
    frequency_penalty: float
    presence_penalty: float
    max_new_tokens: int | None
    top_a: float = 0.0
    typical_p: float = 1.0
    dry: DrySettings | None = None
    xtc: XtcSettings | None = None
    mirostat: MirostatSettings | None = None
    sampler_order: SamplerOrder = SamplerOrder.TEMPERATURE_FIRST
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    allowed_token_ids: frozenset[int] | None = None
    banned_token_ids: frozenset[int] = frozenset()
    min_new_tokens: int = 0
    logprobs: int | None = None
    prompt_logprobs: int | None = None


_WITH_CHECKPOINT: Mapping[str, object] = {"top_k": 50, "top_p": 1.0, "min_p": 0.0}
_WITHOUT_CHECKPOINT: Mapping[str, object] = {"top_k": 40, "top_p": 0.95, "min_p": 0.05}
_ALWAYS: Mapping[str, object] = {
    "repetition_penalty": 1.0,
    "repeat_last_n": 64,
    "frequency_penalty": 0.0,
    "presence_penalty": 0.0,
    "max_new_tokens": None,
}


def _first(*values: T | None, default: T) -> T:
    return next((value for value in values if value is not None), default)


def _sampling_mode(
    checkpoint: GenerationOverrides, overrides: GenerationOverrides
) -> tuple[bool, float]:
    """Return (do_sample, temperature) by eredu-core's precedence."""
    if overrides.do_sample is False:
        return False, 0.0
    if overrides.do_sample:
        return True, _first(overrides.temperature, checkpoint.temperature, default=1.0)
    if overrides.temperature is not None:
        return overrides.temperature > 0.0, overrides.temperature
    if checkpoint.do_sample:
        return True, _first(checkpoint.temperature, default=1.0)
    return False, 0.0


def resolve_generation_config(
    checkpoint: GenerationOverrides | None, overrides: GenerationOverrides
) -> ResolvedGenerationConfig:
    """Layer a request over a checkpoint's defaults and validate the result.

    Raises:
        SettingError: the first refused field, by the subclass that names it.
    """
    resolved = layered_config(checkpoint, overrides)
    errors = setting_errors(resolved)
    if errors:
        raise errors[0]
    return resolved


def layered_config(
    checkpoint: GenerationOverrides | None, overrides: GenerationOverrides
) -> ResolvedGenerationConfig:
    """Layer a request over a checkpoint's defaults, without a check of the result.

    A checkpoint's least number of tokens gives way to a smaller budget of the request.

    Source: eredu-core, `resolve_generation_config`.
    """
    base = checkpoint or GenerationOverrides()
    values: dict[str, object] = {
        **_ALWAYS,
        **(_WITHOUT_CHECKPOINT if checkpoint is None else _WITH_CHECKPOINT),
    }
    for layer in (base, overrides):
        given = {each.name: getattr(layer, each.name) for each in fields(layer)}
        values |= {name: value for name, value in given.items() if value is not None}
    budget, least = overrides.max_new_tokens, base.min_new_tokens
    if budget is not None and least is not None and overrides.min_new_tokens is None:
        values["min_new_tokens"] = min(least, max(0, budget))
    values["do_sample"], values["temperature"] = _sampling_mode(base, overrides)
    return ResolvedGenerationConfig(**values)  # type: ignore[arg-type]  # the names are the same
