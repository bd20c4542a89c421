import math
from dataclasses import replace

import pytest

from service import errors
from service.generation.config import (
    GenerationOverrides,
    resolve_generation_config,
    setting_errors,
)

NOTHING = GenerationOverrides()


def test_checkpoint_values_hold_where_the_request_is_silent():
    checkpoint = GenerationOverrides(
        do_sample=True, temperature=0.8, top_k=64, repetition_penalty=1.1
    )
    resolved = resolve_generation_config(checkpoint, NOTHING)
    assert resolved.do_sample
    assert resolved.temperature == 0.8
    assert resolved.top_k == 64
    assert resolved.repetition_penalty == 1.1
    assert resolved.repeat_last_n == 64


def test_defaults_depend_on_whether_a_checkpoint_declares_any():
    with_checkpoint = resolve_generation_config(NOTHING, NOTHING)
    without = resolve_generation_config(None, NOTHING)
    assert (50, 1.0, 0.0) == (
        with_checkpoint.top_k,
        with_checkpoint.top_p,
        with_checkpoint.min_p,
    )
    assert (40, 0.95, 0.05) == (without.top_k, without.top_p, without.min_p)


@pytest.mark.parametrize(
    ("checkpoint", "overrides", "expected"),
    [
        (NOTHING, NOTHING, (False, 0.0)),
        (GenerationOverrides(do_sample=True), NOTHING, (True, 1.0)),
        (GenerationOverrides(do_sample=True, temperature=0.6), NOTHING, (True, 0.6)),
        (GenerationOverrides(temperature=0.6), NOTHING, (False, 0.0)),
        (NOTHING, GenerationOverrides(temperature=0.4), (True, 0.4)),
        (GenerationOverrides(do_sample=True), GenerationOverrides(temperature=0.0), (False, 0.0)),
        (NOTHING, GenerationOverrides(do_sample=True), (True, 1.0)),
        (
            GenerationOverrides(temperature=0.6),
            GenerationOverrides(do_sample=True),
            (True, 0.6),
        ),
        (
            NOTHING,
            GenerationOverrides(do_sample=False, temperature=0.9),
            (False, 0.0),
        ),
    ],
)
def test_sampling_mode_follows_the_seed_precedence(checkpoint, overrides, expected):
    resolved = resolve_generation_config(checkpoint, overrides)
    assert expected == (resolved.do_sample, resolved.temperature)


def test_explicit_zero_is_a_value_and_not_an_absence():
    checkpoint = GenerationOverrides(top_k=64, min_p=0.2)
    resolved = resolve_generation_config(checkpoint, GenerationOverrides(top_k=0, min_p=0.0))
    assert (resolved.top_k, resolved.min_p) == (0, 0.0)


@pytest.mark.parametrize(
    ("overrides", "error", "field"),
    [
        ({"temperature": math.nan}, errors.InvalidTemperature, "temperature"),
        ({"temperature": -1.0}, errors.InvalidTemperature, "temperature"),
        ({"temperature": math.inf}, errors.InvalidTemperature, "temperature"),
        (
            {"do_sample": True, "temperature": 0.0},
            errors.StochasticZeroTemperature,
            "temperature",
        ),
        ({"top_k": -1}, errors.InvalidTopK, "top_k"),
        ({"top_p": 2.0}, errors.InvalidTopP, "top_p"),
        ({"top_p": math.nan}, errors.InvalidTopP, "top_p"),
        ({"min_p": -0.1}, errors.InvalidMinP, "min_p"),
        ({"repetition_penalty": 0.0}, errors.InvalidRepetitionPenalty, "repetition_penalty"),
        (
            {"frequency_penalty": math.nan},
            errors.InvalidFrequencyPenalty,
            "frequency_penalty",
        ),
        ({"presence_penalty": math.inf}, errors.InvalidPresencePenalty, "presence_penalty"),
        ({"max_new_tokens": 0}, errors.ZeroTokenBudget, "max_new_tokens"),
        ({"max_new_tokens": -1}, errors.ZeroTokenBudget, "max_new_tokens"),
    ],
)
def test_resolve_refuses_a_value_by_the_error_that_names_its_field(overrides, error, field):
    with pytest.raises(error) as caught:
        resolve_generation_config(None, GenerationOverrides(**overrides))
    assert caught.value.field == field
    assert field in str(caught.value)


def test_setting_errors_lists_every_refused_field_at_once():
    valid = resolve_generation_config(None, NOTHING)
    broken = replace(valid, top_k=-1, top_p=7.0, max_new_tokens=0)
    assert ["top_k", "top_p", "max_new_tokens"] == [e.field for e in setting_errors(broken)]
    assert setting_errors(valid) == ()


@pytest.mark.parametrize(("budget", "least"), [(8, 8), (32, 16), (None, 16)])
def test_least_tokens_of_a_checkpoint_give_way_to_a_smaller_budget(budget, least):
    """The request never named the field that it would otherwise be refused for."""
    checkpoint = GenerationOverrides(min_new_tokens=16)
    overrides = GenerationOverrides(max_new_tokens=budget)
    assert least == resolve_generation_config(checkpoint, overrides).min_new_tokens


def test_least_tokens_of_a_request_do_not_give_way():
    overrides = GenerationOverrides(max_new_tokens=8, min_new_tokens=9)
    with pytest.raises(errors.ContradictorySettings, match="min_new_tokens"):
        resolve_generation_config(GenerationOverrides(min_new_tokens=16), overrides)
