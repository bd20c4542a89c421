"""The two implementations of sampling agree: over rows of logits, and over a law's few tokens.

They were written apart from one another, so that what both do is what was meant.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from engines.sampling.kept import Kept
from engines.sampling.row_sampler import RowSampler
from engines.scripted.sampling import ScriptedSampler
from service.errors import NothingAllowed
from service.generation.config import ResolvedGenerationConfig
from service.generation.randomness import AddressedRandomness
from service.generation.sampling import (
    DrySettings,
    MirostatSettings,
    SamplerOrder,
    XtcSettings,
)
from service.speculation.contract import History, SamplingInput
from tests.contract.constraints import Outputs, Stripes

SIZE = 16
REAL = 14
IDS = st.integers(0, REAL - 1)
TOKENS = st.lists(IDS, max_size=8).map(tuple)
# No threshold below falls onto a ratio of exponentials of these, so that rounding decides nothing.
ROWS = arrays(np.float32, SIZE, elements=st.integers(-60, 60).map(lambda step: step / 16))
STRENGTH = st.integers(-30, 30).map(lambda step: step / 8)


def sometimes(strategy):
    return st.one_of(st.none(), st.none(), strategy)


CONFIGS = st.builds(
    ResolvedGenerationConfig,
    do_sample=st.just(True),
    temperature=st.sampled_from([0.0, 0.0, 0.6, 1.0, 1.9]),
    top_k=st.sampled_from([0, 0, 1, 3, 7, 50]),
    top_p=st.sampled_from([1.0, 0.911, 0.537, 0.0]),
    min_p=st.sampled_from([0.0, 0.0, 0.0613, 0.377]),
    top_a=st.sampled_from([0.0, 0.0, 0.213, 3.0]),
    typical_p=st.sampled_from([1.0, 1.0, 0.871, 0.333]),
    repetition_penalty=st.sampled_from([1.0, 1.3, 0.8]),
    repeat_last_n=st.sampled_from([-1, 0, 3, 64]),
    frequency_penalty=st.sampled_from([0.0, 0.45, -0.3]),
    presence_penalty=st.sampled_from([0.0, 0.7]),
    max_new_tokens=st.none(),
    dry=sometimes(
        st.builds(DrySettings, st.just(0.8), st.sampled_from([1.0, 1.75]), st.integers(1, 3))
    ),
    xtc=sometimes(
        st.builds(XtcSettings, st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.0517, 0.219]))
    ),
    mirostat=sometimes(
        st.builds(MirostatSettings, st.sampled_from([1, 2]), st.floats(0.3, 4.0), st.just(0.37))
    ),
    sampler_order=st.sampled_from(SamplerOrder),
    logit_bias=st.dictionaries(IDS, STRENGTH, max_size=3),
    allowed_token_ids=sometimes(st.frozensets(IDS, min_size=1)),
    banned_token_ids=st.frozensets(IDS, max_size=4),
    min_new_tokens=st.sampled_from([0, 0, 5]),
)
CONSTRAINTS = st.sampled_from(
    [None, None, Stripes(), Outputs(((1, 2, 3), (4,), (1, 7)), 0, field="chat.tools")]
)


@st.composite
def pairs(draw) -> tuple[RowSampler, ScriptedSampler]:
    """Return both engines' samplers of one request."""
    request = SamplingInput(
        config=draw(CONFIGS),
        prompt=(),
        vocabulary_size=REAL,
        end_token_ids=draw(st.frozensets(IDS, max_size=2)),
        run_breakers=draw(st.frozensets(IDS, max_size=2)),
        coins=AddressedRandomness(b"both engines"),
        constraint=draw(CONSTRAINTS),
    )
    return RowSampler.from_input(request), ScriptedSampler(request)


def listed(row) -> tuple[tuple[int, float], ...]:
    """Return a row as a law gives it."""
    return tuple(enumerate(row.tolist()))


def agree(rows, law) -> bool:
    """Whether two distributions are equal; the most likely token is never left out."""
    ours = [rows.probability(token) for token in range(SIZE)]
    theirs = [law.probability(token) for token in range(SIZE)]
    return ours == pytest.approx(theirs, rel=1e-4, abs=1e-9)


def outcome(process):
    """Return a distribution, or what the request forbids together."""
    try:
        return process()
    except NothingAllowed as refusal:
        return refusal.position, refusal.fields


@given(samplers=pairs(), row=ROWS, prompt=TOKENS, generated=TOKENS)
def test_rows_and_laws_are_processed_alike(samplers, row, prompt, generated) -> None:
    rows, law = samplers
    history = History(prompt, generated)

    ours = outcome(lambda: rows.distribution(row, history))
    theirs = outcome(lambda: law.process(listed(row), history))

    if isinstance(ours, tuple):
        assert ours == theirs
    else:
        assert agree(ours, theirs)


@given(
    samplers=pairs(),
    rows=st.lists(ROWS, min_size=1, max_size=4),
    draw=st.floats(0.0, 1.0, exclude_max=True),
)
def test_states_advance_alike(samplers, rows, draw) -> None:
    """Constraint and Mirostat, over tokens that were drawn; log-probabilities on the way."""
    ours, theirs = samplers
    generated: tuple[int, ...] = ()
    for row in rows:
        history = History((3, 1), generated)
        try:
            processed = ours.process(row, history)
        except NothingAllowed:
            return
        one, other = processed.distribution, theirs.process(listed(row), history)
        assert agree(one, other)
        token = one.sample(draw)
        scored, expected = (
            processed.logprob(token, 5),
            theirs.logprob(listed(row), history, token, 5),
        )
        assert scored.logprob == pytest.approx(expected.logprob, abs=1e-4)
        # Equal probabilities may differ in their last bit, and then their order does.
        assume(_are_apart([log for _, log in expected.alternatives]))
        assert [each for each, _ in expected.alternatives] == [
            each for each, _ in scored.alternatives
        ]
        generated = (*generated, token)
        ours, theirs = ours.advance(one, token), theirs.advance(other, token)
        assert ours.grammar_is_complete() == theirs.grammar_is_complete()


def _are_apart(logs: list[float]) -> bool:
    return all(math.fabs(a - b) > 1e-6 for a, b in pairwise(logs))


@given(samplers=pairs(), generated=TOKENS, committed=st.integers(0, 8))
def test_what_may_follow_is_the_same(samplers, generated, committed) -> None:
    ours, theirs = samplers
    certain = Kept(np.arange(SIZE), np.full(SIZE, 1 / SIZE))
    for token in generated[:committed]:
        ours, theirs = ours.advance(certain, token), theirs.advance(certain, token)

    assert [theirs.may_follow(generated, token) for token in range(SIZE)] == [
        ours.may_follow(generated, token) for token in range(SIZE)
    ]
    assert theirs.prefix_is_complete(generated) == ours.prefix_is_complete(generated)
