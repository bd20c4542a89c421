"""Any settings, together on any proposers: the rules hold, and speculation changes nothing."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from engines.scripted.law import HashLaw
from outrider.v1 import generation_pb2, settings_pb2
from service.errors import NothingAllowed, OutriderError, Status
from service.generation.config import GREEDY_BELOW
from service.runtime.models import LoadedModel
from tests.cases.asking import (
    EOS,
    GRAMMAR,
    LOOKUP,
    NONE,
    Answer,
    asked,
    output_of,
    speculation,
    stop_at,
    tried,
)
from tests.cases.stage import staged, tiny

LARGE, SMALL = 3.4e38, 1e-38
PROPOSERS = {
    "scripted": ("own-law", "mostly-right", "wrong", LOOKUP, NONE),
    "tiny": ("draft", LOOKUP, NONE),
}


@cache
def model(engine: str) -> LoadedModel:
    if engine == "tiny":
        return tiny(draft_seed=1, max_context=40)
    return staged(HashLaw((*b"abc", 2), candidates=6, end_one_in=9), max_context=40)


dry = st.builds(
    settings_pb2.DrySettings,
    multiplier=st.sampled_from([0.0, 0.5, LARGE]),
    base=st.sampled_from([1.0, 1.75, LARGE]),
    allowed_length=st.sampled_from([1, 2, 2**31 - 1]),
)
xtc = st.builds(
    settings_pb2.XtcSettings,
    probability=st.sampled_from([0.0, 0.5, 1.0]),
    threshold=st.sampled_from([0.0, 0.1, 1.0]),
)
mirostat = st.builds(
    settings_pb2.MirostatSettings,
    version=st.sampled_from([1, 2]),
    tau=st.sampled_from([SMALL, 3.0, LARGE]),
    eta=st.sampled_from([SMALL, 0.1, LARGE]),
)
constraints = st.sampled_from(
    [
        settings_pb2.Constraint(regex="[a-c]{1,9}"),
        settings_pb2.Constraint(regex="(ab)*c"),
        settings_pb2.Constraint(json=settings_pb2.Constraint.AnyJson()),
        settings_pb2.Constraint(choice=settings_pb2.Constraint.Choice(texts=["abc", "abd", "x"])),
    ]
)
optional_settings = {
    "temperature": st.sampled_from([0.0, SMALL, 1e-6, 0.7, 1.0, 50.0, LARGE]),
    "top_k": st.sampled_from([0, 1, 3, 2**31 - 1]),
    "top_p": st.sampled_from([0.0, SMALL, 0.6, 1.0]),
    "min_p": st.sampled_from([0.0, 0.3, 1.0]),
    "top_a": st.sampled_from([0.0, 0.5, LARGE]),
    "typical_p": st.sampled_from([SMALL, 0.5, 1.0]),
    "repetition_penalty": st.sampled_from([SMALL, 1.3, LARGE]),
    "frequency_penalty": st.sampled_from([-LARGE, -0.5, 0.5, LARGE]),
    "presence_penalty": st.sampled_from([-LARGE, 0.5, LARGE]),
    "repeat_last_n": st.sampled_from([-1, 0, 1, 5, 2**31 - 1]),
    "dry": dry,
    "xtc": xtc,
    "mirostat": mirostat,
    "sampler_order": st.sampled_from([1, 2]),
    "logit_bias": st.dictionaries(
        st.sampled_from([0, 2, 97, 98]), st.sampled_from([-LARGE, SMALL, 5.0, LARGE])
    ),
    "min_new_tokens": st.sampled_from([0, 1, 4]),
    "max_context": st.sampled_from([13, 20, 40]),
    "stops": st.sampled_from([stop_at("ab"), stop_at(97), stop_at("zz", "ca")]),
    "stop_on_eos": st.booleans(),
    "allowed_token_ids": st.sampled_from([[97], [97, 98, 99], [2, 257], [*range(200)]]),
    "banned_token_ids": st.sampled_from([[97], [257], [*range(98)]]),
    "logprobs": st.sampled_from([0, 2, 20]),
    "prompt_logprobs": st.sampled_from([0, 20]),
    "constraint": constraints,
}


@st.composite
def requests(draw: st.DrawFn, engine: str) -> generation_pb2.Generation:
    names = draw(st.sets(st.sampled_from(sorted(optional_settings)), max_size=6))
    given_settings = {name: draw(optional_settings[name]) for name in sorted(names)}
    proposer = draw(st.sampled_from(PROPOSERS[engine]))
    return asked(
        "abcabcabcabc"[: draw(st.integers(1, 12))],
        proposer,
        None if proposer == NONE else draw(st.integers(1, 8)),
        seed=draw(st.integers(0, 2**64 - 1)),
        max_new_tokens=draw(st.sampled_from([4, 5, 14, 100])),
        **given_settings,
    )


def without_drafts(message: generation_pb2.Generation) -> generation_pb2.Generation:
    plain = generation_pb2.Generation()
    plain.CopyFrom(message)
    plain.speculation.CopyFrom(speculation(NONE))
    return plain


def is_greedy(message: generation_pb2.Generation) -> bool:
    return message.settings.temperature < GREEDY_BELOW


def told(outcome: Answer | OutriderError) -> object:
    """Return what must not depend on neighbours or drafts."""
    return str(outcome) if isinstance(outcome, OutriderError) else output_of(outcome)


def assert_rules_hold(message: generation_pb2.Generation, answer: Answer) -> None:
    wanted, tokens = message.settings, answer.tokens
    count = len(tokens.token_ids)
    assert 1 <= count <= wanted.max_new_tokens
    assert count == answer.finished.usage.completion_tokens == len(tokens.sources)
    assert count + answer.admitted.prompt_tokens <= answer.admitted.settings.max_context
    assert not {*tokens.token_ids} & {*wanted.banned_token_ids}
    if wanted.allowed_token_ids:
        assert {*tokens.token_ids} <= {*wanted.allowed_token_ids}
    if wanted.HasField("logprobs"):
        assert count == len(tokens.logprobs)
        assert all(value > float("-inf") for value in tokens.logprobs)
    if answer.finished.reason == EOS or answer.finished.HasField("matched_stop"):
        assert count >= wanted.min_new_tokens
    if answer.finished.reason == GRAMMAR:
        assert wanted.HasField("constraint")


@pytest.mark.parametrize("engine", PROPOSERS)
@settings(max_examples=20)
@given(drawn=st.data())
def test_requests_keep_their_own_rules_alone_and_together(engine, drawn):
    """Extreme values of all settings at once; what no token can satisfy is refused alike."""
    messages = drawn.draw(st.lists(requests(engine), min_size=1, max_size=6))
    together = tried(model(engine), messages)

    for message, outcome in zip(messages, together, strict=True):
        (alone,) = tried(model(engine), [message])
        assert told(alone) == told(outcome)
        if is_greedy(message):
            (plain,) = tried(model(engine), [without_drafts(message)])
            assert told(plain) == told(outcome)
        if isinstance(outcome, OutriderError):
            assert Status.INVALID_ARGUMENT is outcome.status
            event(f"nothing allowed: {isinstance(outcome, NothingAllowed)}")
        else:
            assert_rules_hold(message, outcome)
            event(f"ended: {outcome.finished.reason}")
