from dataclasses import asdict, replace

import pytest

from service import errors
from service.speculation.completion import BoundedWait, CompletionCancellation
from service.speculation.options import SchedulerOptions, SpeculativeConfig


def test_defaults_are_the_seeds_and_validate():
    options = SchedulerOptions().validate()
    assert (1, 1, 1) == (
        options.max_in_flight_verifications,
        options.max_optimistic_branches,
        options.lookahead_blocks,
    )
    assert options.completion_timeout_milliseconds == 30_000
    assert SchedulerOptions(**asdict(options)) == options
    config = SpeculativeConfig().validate()
    assert (256, 4, 0.0) == (config.max_tokens, config.max_draft_tokens, config.temperature)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"max_in_flight_verifications": 0}, errors.ZeroInFlightVerifications),
        ({"lookahead_blocks": 2}, errors.TooManyLookaheadBlocks),
        ({"max_optimistic_branches": 0}, errors.LookaheadWithoutBranchCapacity),
        ({"adaptive_lookahead_min_blocks": 0}, errors.ZeroAdaptiveLookaheadWindow),
        ({"completion_timeout_milliseconds": 0}, errors.ZeroCompletionTimeout),
        ({"completion_timeout_milliseconds": -1}, errors.OptionOutOfRange),
        ({"max_pass_lanes": 0}, errors.OptionOutOfRange),
        ({"max_pass_lanes": 2**32}, errors.OptionOutOfRange),
        ({"prefill_chunk_tokens": 0}, errors.OptionOutOfRange),
        ({"merge_after_passes": -1}, errors.OptionOutOfRange),
        ({"max_in_flight_verifications": 2**32}, errors.OptionOutOfRange),
    ],
)
def test_scheduler_options_refuse_what_could_not_run(change, error):
    with pytest.raises(error) as caught:
        replace(SchedulerOptions(), **change).validate()
    assert str(caught.value).startswith(next(iter(change)))


def test_branch_bound_may_not_be_negative_even_with_lookahead_off():
    off = replace(SchedulerOptions(), lookahead_blocks=0, max_optimistic_branches=-3)
    with pytest.raises(errors.OptionOutOfRange, match="max_optimistic_branches"):
        off.validate()


def test_lookahead_off_needs_no_branches_and_on_makes_room_for_one():
    off = replace(SchedulerOptions(), max_optimistic_branches=0).with_lookahead(enabled=False)
    assert off.validate().lookahead_blocks == 0
    on = off.with_lookahead(enabled=True).validate()
    assert (1, 1) == (on.lookahead_blocks, on.max_optimistic_branches)


def test_completion_wait_keeps_timeout_and_disposition():
    options = SchedulerOptions().with_completion_wait(1.5, CompletionCancellation.NATIVE_CANCEL)
    assert options.completion_wait() == BoundedWait(1.5, CompletionCancellation.NATIVE_CANCEL)
    with pytest.raises(errors.ZeroCompletionTimeout):
        options.with_completion_wait(0.0, CompletionCancellation.NATIVE_CANCEL)
    with pytest.raises(errors.CompletionTimeoutTooLarge):
        options.with_completion_wait(2.0**64, CompletionCancellation.NATIVE_CANCEL)


@pytest.mark.parametrize(
    ("config", "error"),
    [
        (SpeculativeConfig(max_draft_tokens=0), errors.ZeroDraftTokens),
        (SpeculativeConfig(temperature=float("nan")), errors.InvalidTemperature),
        (SpeculativeConfig(temperature=-0.1), errors.InvalidTemperature),
    ],
)
def test_speculative_config_refuses_what_could_not_draft(config, error):
    with pytest.raises(error):
        config.validate()
