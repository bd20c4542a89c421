"""A draft with the target's own weights is never rejected: it processes rows as the target does."""

import pytest

from outrider.v1.settings_pb2 import DrySettings, SequenceBreakers, XtcSettings
from tests.cases.asking import asked, one
from tests.cases.stage import tiny

SHAPED = {
    "penalties": {"repetition_penalty": 1.3, "frequency_penalty": 0.4, "presence_penalty": 0.3},
    "DRY": {"dry": DrySettings(multiplier=2.0, sequence_breakers=SequenceBreakers())},
    "XTC": {"xtc": XtcSettings(probability=0.5, threshold=0.02)},
    "bias and bans": {"logit_bias": {40: 2.0, 50: -3.0}, "banned_token_ids": [60, 61]},
    "least tokens": {"min_new_tokens": 40},
}


@pytest.mark.parametrize("settings", SHAPED.values(), ids=SHAPED)
@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_draft_with_the_targets_weights_is_accepted_whole(settings, temperature) -> None:
    """Every token of a block counts for those after it, and coins fall alike on both sides."""
    answer = one(
        tiny(),
        asked(
            (40, 50, 60, 40, 50),
            "draft",
            5,
            temperature=temperature,
            seed=11,
            max_new_tokens=60,
            stop_on_eos=False,
            **settings,
        ),
    )

    statistics = answer.finished.statistics
    assert statistics.judged_tokens == statistics.accepted_tokens > 30
