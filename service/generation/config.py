"""Generation settings: checkpoint defaults, request overrides, and what they resolve to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

from service.errors import (
    InvalidFrequencyPenalty,
    InvalidMinP,
    InvalidPresencePenalty,
    InvalidRepetitionPenalty,
    InvalidTemperature,
    InvalidTopK,
    InvalidTopP,
    SettingError,
    StochasticZeroTemperature,
    ZeroTokenBudget,
)

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
    repetition_penalty: float | None = None
    repeat_last_n: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    max_new_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ResolvedGenerationConfig:
    """Settings with nothing left open, all of them validated.

    `repeat_last_n`: negative covers the whole history, zero none of it.
    `max_new_tokens` is None where neither side declared a budget.
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


@dataclass(frozen=True, slots=True)
class _Defaults:
    top_k: int
    top_p: float
    min_p: float


_WITH_CHECKPOINT = _Defaults(top_k=50, top_p=1.0, min_p=0.0)
_WITHOUT_CHECKPOINT = _Defaults(top_k=40, top_p=0.95, min_p=0.05)


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

    Source: eredu-core, `resolve_generation_config`.
    """
    defaults = _WITHOUT_CHECKPOINT if checkpoint is None else _WITH_CHECKPOINT
    base = checkpoint or GenerationOverrides()
    do_sample, temperature = _sampling_mode(base, overrides)
    resolved = ResolvedGenerationConfig(
        do_sample=do_sample,
        temperature=temperature,
        top_k=_first(overrides.top_k, base.top_k, default=defaults.top_k),
        top_p=_first(overrides.top_p, base.top_p, default=defaults.top_p),
        min_p=_first(overrides.min_p, base.min_p, default=defaults.min_p),
        repetition_penalty=_first(
            overrides.repetition_penalty, base.repetition_penalty, default=1.0
        ),
        repeat_last_n=_first(overrides.repeat_last_n, base.repeat_last_n, default=64),
        frequency_penalty=_first(overrides.frequency_penalty, base.frequency_penalty, default=0.0),
        presence_penalty=_first(overrides.presence_penalty, base.presence_penalty, default=0.0),
        max_new_tokens=(
            overrides.max_new_tokens
            if overrides.max_new_tokens is not None
            else base.max_new_tokens
        ),
    )
    errors = setting_errors(resolved)
    if errors:
        raise errors[0]
    return resolved


def setting_errors(config: ResolvedGenerationConfig) -> tuple[SettingError, ...]:
    """Return every refused field, in a fixed order; empty when all are valid."""
    temperature_ok = math.isfinite(config.temperature) and config.temperature >= 0.0
    stochastic_zero = config.do_sample and config.temperature == 0.0
    penalty = config.repetition_penalty
    budget = config.max_new_tokens
    checks: tuple[tuple[bool, type[SettingError], object], ...] = (
        (temperature_ok, InvalidTemperature, config.temperature),
        (not stochastic_zero, StochasticZeroTemperature, None),
        (config.top_k >= 0, InvalidTopK, config.top_k),
        (0.0 <= config.top_p <= 1.0, InvalidTopP, config.top_p),
        (0.0 <= config.min_p <= 1.0, InvalidMinP, config.min_p),
        (math.isfinite(penalty) and penalty > 0.0, InvalidRepetitionPenalty, penalty),
        (
            math.isfinite(config.frequency_penalty),
            InvalidFrequencyPenalty,
            config.frequency_penalty,
        ),
        (math.isfinite(config.presence_penalty), InvalidPresencePenalty, config.presence_penalty),
        (budget is None or budget > 0, ZeroTokenBudget, budget),
    )
    return tuple(error(value) for valid, error, value in checks if not valid)
