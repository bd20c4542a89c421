"""What each resolved setting must satisfy: one table, in a fixed order."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from service.errors import (
    ContradictorySettings,
    InvalidFrequencyPenalty,
    InvalidMinP,
    InvalidMirostatEta,
    InvalidMirostatTau,
    InvalidPresencePenalty,
    InvalidRepetitionPenalty,
    InvalidTemperature,
    InvalidTopK,
    InvalidTopP,
    SettingError,
    SettingOutOfRange,
    StochasticZeroTemperature,
    ZeroTokenBudget,
)
from service.generation.sampling import DrySettings, MirostatSettings, XtcSettings

if TYPE_CHECKING:
    from service.generation.config import ResolvedGenerationConfig

MAX_LOGPROBS = 20
"""The most alternatives of a token that can be asked for."""

Check = tuple[bool, SettingError]


def setting_errors(config: ResolvedGenerationConfig) -> tuple[SettingError, ...]:
    """Return every refused field, in a fixed order; empty when all are valid."""
    checks = (
        *_seed_checks(config),
        *_truncation_checks(config),
        *_dry_checks(config.dry),
        *_xtc_checks(config.xtc),
        *_mirostat_checks(config.mirostat),
        *_token_checks(config),
    )
    return tuple(error for valid, error in checks if not valid)


def _seed_checks(config: ResolvedGenerationConfig) -> tuple[Check, ...]:
    """Check what the seeds' own configuration holds."""
    temperature_ok = _is_at_least(0.0, config.temperature)
    stochastic_zero = config.do_sample and config.temperature == 0.0
    penalty, frequency = config.repetition_penalty, config.frequency_penalty
    presence, budget = config.presence_penalty, config.max_new_tokens
    return (
        (temperature_ok, InvalidTemperature(config.temperature)),
        (not stochastic_zero, StochasticZeroTemperature()),
        (config.top_k >= 0, InvalidTopK(config.top_k)),
        (0.0 <= config.top_p <= 1.0, InvalidTopP(config.top_p)),
        (0.0 <= config.min_p <= 1.0, InvalidMinP(config.min_p)),
        (_is_above(0.0, penalty), InvalidRepetitionPenalty(penalty)),
        (math.isfinite(frequency), InvalidFrequencyPenalty(frequency)),
        (math.isfinite(presence), InvalidPresencePenalty(presence)),
        (budget is None or budget > 0, ZeroTokenBudget(budget)),
    )


def _truncation_checks(config: ResolvedGenerationConfig) -> tuple[Check, ...]:
    typical_ok = 0.0 < config.typical_p <= 1.0
    return (
        _ranged(_is_at_least(0.0, config.top_a), "top_a", "at least 0", config.top_a),
        _ranged(typical_ok, "typical_p", "above 0 and at most 1", config.typical_p),
    )


def _dry_checks(dry: DrySettings | None) -> tuple[Check, ...]:
    if dry is None:
        return ()
    strength, base, length = dry.multiplier, dry.base, dry.allowed_length
    return (
        _ranged(_is_at_least(0.0, strength), "dry.multiplier", "at least 0", strength),
        _ranged(_is_at_least(1.0, base), "dry.base", "at least 1", base),
        _ranged(length >= 1, "dry.allowed_length", "at least 1", length),
    )


def _xtc_checks(xtc: XtcSettings | None) -> tuple[Check, ...]:
    if xtc is None:
        return ()
    return tuple(
        _ranged(0.0 <= value <= 1.0, f"xtc.{name}", "between 0 and 1", value)
        for name, value in (("probability", xtc.probability), ("threshold", xtc.threshold))
    )


def _mirostat_checks(mirostat: MirostatSettings | None) -> tuple[Check, ...]:
    if mirostat is None:
        return ()
    version = mirostat.version
    return (
        _ranged(version in {1, 2}, "mirostat.version", "1 or 2", version),
        (_is_above(0.0, mirostat.tau), InvalidMirostatTau(mirostat.tau)),
        (_is_above(0.0, mirostat.eta), InvalidMirostatEta(mirostat.eta)),
    )


def _token_checks(config: ResolvedGenerationConfig) -> tuple[Check, ...]:
    least, most = config.min_new_tokens, config.max_new_tokens
    biases_ok = all(map(math.isfinite, config.logit_bias.values()))
    allowed = config.allowed_token_ids
    nothing_left = allowed is not None and not allowed - config.banned_token_ids
    return (
        _ranged(least >= 0, "min_new_tokens", "at least 0", least),
        (
            most is None or most <= 0 or least <= most,
            ContradictorySettings("min_new_tokens", f"is {least}, above max_new_tokens, {most}"),
        ),
        _ranged(biases_ok, "logit_bias", "finite for each token", "another value"),
        (
            not nothing_left,
            ContradictorySettings("allowed_token_ids", "are all banned by banned_token_ids"),
        ),
        *(
            _ranged(count is None or 0 <= count <= MAX_LOGPROBS, name, _COUNT, count)
            for name, count in (
                ("logprobs", config.logprobs),
                ("prompt_logprobs", config.prompt_logprobs),
            )
        ),
    )


_COUNT = f"between 0 and {MAX_LOGPROBS}"


def _ranged(valid: bool, field: str, rule: str, value: object) -> Check:  # noqa: FBT001 - a row
    return valid, SettingOutOfRange(field, f"must be {rule}", value)


def _is_above(least: float, value: float) -> bool:
    return math.isfinite(value) and value > least


def _is_at_least(least: float, value: float) -> bool:
    return math.isfinite(value) and value >= least
