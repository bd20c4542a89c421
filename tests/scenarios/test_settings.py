"""Settings and constraints under speculation, through a request table on the scripted engine."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engines.scripted.law import HashLaw
from engines.scripted.model import DRAFT_RULES, ScriptedSettings, draft_rule, scripted_proposer
from engines.scripted.model import scripted_target as target_of
from engines.scripted.vocabulary import Special
from service.generation.finish import FinishReason
from service.generation.sampling import DrySettings, MirostatSettings, XtcSettings
from service.speculation.lifecycle import RequestStatus
from service.speculation.options import SchedulerOptions
from tests.contract.constraints import Outputs, Stripes
from tests.neutral import GREEDY
from tests.scenarios.driver import Plan, Play, TableDriver

LAW = HashLaw(tuple(b"abcdefgh"), candidates=9)
PROMPT = tuple(b"fed a bad cabbage")
END = int(Special.EOS)
SAMPLED = replace(GREEDY, do_sample=True, temperature=1.2)
TOKENS = 14
ADJUSTED = {
    "repetition": {"repetition_penalty": 1.5},
    "frequency": {"frequency_penalty": 0.7},
    "presence": {"presence_penalty": 0.7, "repeat_last_n": 5},
    "dry": {"dry": DrySettings(multiplier=9.0, allowed_length=1)},
    "bias": {"logit_bias": {ord("a"): 1.5, ord("z"): 3.0}},
    "banned": {"banned_token_ids": frozenset(b"abc")},
    "early": {"logit_bias": {END: 99.0}, "min_new_tokens": 6},
}
DRAWN = {
    **ADJUSTED,
    "truncated": {"top_k": 5, "top_p": 0.9, "min_p": 0.01, "top_a": 0.1, "typical_p": 0.9},
    "xtc": {"xtc": XtcSettings(0.5, 0.05)},
    "mirostat": {"mirostat": MirostatSettings(tau=1.0)},
}
RULES = pytest.mark.parametrize("rule", DRAFT_RULES)


def table(names):
    return pytest.mark.parametrize("settings", names.values(), ids=names.keys())


def play(rule: str | None, *, lookahead: bool = True, width: int = 4, **plan) -> Play:
    """Play one request to its end, on an engine that drafts while it verifies."""
    driver = TableDriver(
        target_of(ScriptedSettings(law=LAW, is_synchronous=False)),
        SchedulerOptions().with_lookahead(enabled=lookahead),
    )
    proposer = None if rule is None else scripted_proposer(rule, draft_rule(rule, LAW))
    driver.submit(Plan("one", PROMPT, TOKENS, proposer, width, is_fixed=True, **plan))
    return driver.run()["one"]


@RULES
@pytest.mark.parametrize("lookahead", [False, True])
@table(ADJUSTED)
def test_greedy_output_is_the_plain_one(settings, rule, lookahead) -> None:
    """B19, B26: whatever a setting does to plain decoding, it does to every draft's."""
    config = replace(GREEDY, **settings)
    plain = play(None, config=config)

    assert plain.tokens == play(rule, config=config, lookahead=lookahead).tokens
    assert plain.tokens != play(None).tokens


@RULES
@table(DRAWN)
def test_sampled_output_does_not_depend_on_lookahead(settings, rule) -> None:
    config = replace(SAMPLED, **settings)

    one, other = (play(rule, config=config, seed=5, lookahead=each) for each in (False, True))

    assert one.tokens == other.tokens
    assert one.ended.status is RequestStatus.COMPLETED


@RULES
@pytest.mark.parametrize("width", [1, 4, 8])
@pytest.mark.parametrize("config", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
def test_constrained_output_is_permitted_whatever_is_drafted(rule, width, config) -> None:
    """B31: illegal drafts are rejections; greedy output is the plain one."""
    for seed in range(2):
        ended = play(rule, config=config, width=width, seed=seed, constraint=Stripes())
        state = Stripes()
        for token in ended.tokens:
            assert state.permits(token)
            state = state.after(token)
        assert TOKENS == len(ended.tokens)
        if config is GREEDY:
            assert play(None, constraint=Stripes()).tokens == ended.tokens


@RULES
@pytest.mark.parametrize("config", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
def test_complete_output_ends_and_nothing_leaks_behind_it(rule, config) -> None:
    """B31: drafts reach past the end of the grammar, and none of them is committed."""
    outputs = tuple(b"bad"), tuple(b"cab"), tuple(b"face")
    for seed in range(2):
        ended = play(rule, config=config, seed=seed, constraint=Outputs(outputs, END), width=8)
        assert ended.tokens in outputs
        assert FinishReason.GRAMMAR_COMPLETE is ended.ended.finish_reason


@RULES
def test_output_that_cannot_go_on_keeps_what_was_delivered(rule) -> None:
    """B29: it ends by the fields that leave nothing, after what plain decoding would deliver."""
    config = replace(GREEDY, banned_token_ids=frozenset(b"d"))

    ended = play(rule, config=config, constraint=Outputs((tuple(b"bad"),), END))

    assert tuple(b"ba") == ended.tokens
    assert RequestStatus.FAILED is ended.ended.status
    assert ended.ended.slot_is_reusable
    assert ("settings.constraint", "settings.banned_token_ids") == ended.ended.error.fields
