"""What a request is told it resolved to."""

import pytest

from outrider.v1 import settings_pb2
from service.generation.config import GenerationOverrides, layered_config
from service.generation.sampling import DrySettings, MirostatSettings, XtcSettings
from service.rpc.echo import settings_message

SAMPLED = {"temperature": 1.0}
DRY, XTC, MIROSTAT = DrySettings(0.5), XtcSettings(0.5), MirostatSettings()
TRUNCATIONS = ("top_k", "top_p", "min_p", "top_a", "typical_p")


def told(**overrides: object) -> settings_pb2.GenerationSettings:
    return settings_message(layered_config(None, GenerationOverrides(**overrides)))


def test_number_at_its_neutral_value_is_told():
    settings = told()
    numbers = {"temperature", "top_k", "top_a", "typical_p", "repeat_last_n", "min_new_tokens"}
    assert dict.fromkeys(numbers, True) == {name: settings.HasField(name) for name in numbers}
    assert 0 == len(settings.logit_bias) + len(settings.banned_token_ids)


@pytest.mark.parametrize(
    ("group", "value", "acts_when_greedy"),
    [("dry", DRY, True), ("xtc", XTC, False), ("mirostat", MIROSTAT, False)],
)
def test_group_is_told_where_it_acts(group, value, acts_when_greedy):
    assert told(**{group: value}, **SAMPLED).HasField(group)
    assert acts_when_greedy is told(**{group: value}).HasField(group)
    assert not told(**SAMPLED).HasField(group)


@pytest.mark.parametrize(("group", "off"), [("dry", DrySettings(0.0)), ("xtc", XtcSettings(0.0))])
def test_group_that_is_off_is_left_out(group: str, off: object):
    assert not told(**{group: off}, **SAMPLED).HasField(group)


def test_dry_that_looks_back_on_nothing_is_left_out():
    assert not told(dry=DRY, repeat_last_n=0).HasField("dry")
    assert told(dry=DRY, repeat_last_n=-1).HasField("dry")


def test_group_is_told_with_every_part():
    """Also those that the request left to their defaults."""
    settings = told(dry=DRY, xtc=XTC, **SAMPLED)
    assert (0.5, 1.75, 2, ["\n", ":", '"', "*"]) == (
        settings.dry.multiplier,
        settings.dry.base,
        settings.dry.allowed_length,
        list(settings.dry.sequence_breakers.texts),
    )
    assert (0.5, 0.1) == (settings.xtc.probability, settings.xtc.threshold)


def test_mirostat_replaces_the_truncations():
    """Case B28: the precedence is told, even where both were asked for."""
    asked = {"mirostat": MIROSTAT, "top_k": 3, "top_p": 0.5}
    assert [False] * 5 == [told(**asked, **SAMPLED).HasField(name) for name in TRUNCATIONS]
    assert [True] * 5 == [told(**asked).HasField(name) for name in TRUNCATIONS]
