"""One row through all of a request's settings."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from engines.sampling.kept import Kept
from engines.sampling.one_hot import OneHot
from engines.sampling.row_sampler import RowSampler
from service.errors import InvalidLogits
from service.generation.config import GenerationOverrides, resolve_generation_config
from service.generation.randomness import AddressedRandomness
from service.generation.sampling import DrySettings, MirostatSettings, SamplerOrder, XtcSettings
from service.speculation.contract import History, SamplingInput
from tests.engines.sampling.reference import AmbiguousError, DryRule, Settings, processed

COINS = AddressedRandomness(b"coins")
EMPTY = History((), ())
SIZE = 12
TOKENS = st.lists(st.integers(0, SIZE - 1), max_size=8).map(tuple)


def sampler(vocabulary: int = SIZE, *, breakers=frozenset(), **overrides) -> RowSampler:
    neutral = GenerationOverrides(top_k=0, top_p=1.0, min_p=0.0)
    config = resolve_generation_config(None, replace(neutral, **overrides))
    request = SamplingInput(config, (), vocabulary, run_breakers=breakers, coins=COINS)
    return RowSampler.from_input(request)


def overrides_of(settings: Settings) -> dict[str, object]:
    """Return the reference's settings as a request has them."""
    dry, mirostat = settings.dry, settings.mirostat
    last = settings.temperature_last
    return {
        "temperature": settings.temperature,
        "top_k": settings.top_k,
        "top_p": settings.top_p,
        "min_p": settings.min_p,
        "top_a": settings.top_a,
        "typical_p": settings.typical_p,
        "repetition_penalty": settings.repetition,
        "repeat_last_n": settings.last_n,
        "frequency_penalty": settings.frequency,
        "presence_penalty": settings.presence,
        "logit_bias": settings.bias,
        "dry": dry and DrySettings(dry.multiplier, dry.base, dry.allowed_length),
        "xtc": None if settings.xtc is None else XtcSettings(1.0, settings.xtc),
        "mirostat": mirostat and MirostatSettings(mirostat[0], mirostat[1] / 2.0),
        "sampler_order": SamplerOrder.TEMPERATURE_LAST if last else None,
        "banned_token_ids": settings.forbidden or None,
    }


STEP = st.integers(-40, 40).map(lambda step: step / 8)
BREAKERS = frozenset({0, 5})


@given(
    row=arrays(np.float32, SIZE, elements=STEP),
    settings=st.builds(
        Settings,
        temperature=st.sampled_from([0.5, 1.0, 2.0]),
        top_k=st.integers(0, SIZE),
        top_p=st.floats(0.05, 1.0),
        min_p=st.floats(0.0, 0.5),
        top_a=st.sampled_from([0.0, 0.3]),
        typical_p=st.sampled_from([0.5, 0.9, 1.0]),
        repetition=st.sampled_from([1.0, 1.5]),
        frequency=st.sampled_from([0.0, 0.25]),
        presence=st.sampled_from([0.0, 0.5]),
        last_n=st.sampled_from([-1, 0, 4]),
        bias=st.dictionaries(st.integers(0, SIZE - 1), STEP, max_size=3),
        dry=st.one_of(st.none(), st.just(DryRule(0.75, 1.5, 1, BREAKERS))),
        xtc=st.one_of(st.none(), st.floats(0.01, 0.5)),
        mirostat=st.one_of(
            st.none(), st.none(), st.tuples(st.sampled_from([1, 2]), st.floats(0.1, 8.0))
        ),
        temperature_last=st.booleans(),
        forbidden=st.frozensets(st.integers(0, SIZE - 1), max_size=SIZE - 1),
    ),
    prompt=TOKENS,
    generated=TOKENS,
)
def test_row_takes_every_step_in_order(row, settings, prompt, generated) -> None:
    try:
        expected = processed(row.astype(float).tolist(), settings, prompt, generated)
    except AmbiguousError:
        assume(False)
    result = sampler(breakers=BREAKERS, **overrides_of(settings)).distribution(
        row, History(prompt, generated)
    )

    probabilities = {token: result.probability(token) for token in range(SIZE)}
    assert expected == pytest.approx({t: p for t, p in probabilities.items() if p}, rel=1e-4)


@pytest.mark.parametrize("temperature", [0.0, 1e-46, 1e-6])
def test_tiny_temperature_is_greedy(temperature) -> None:
    """B29: no overflow, no sampling among equals, and no draw."""
    row = np.array([1.0, 7.0, 7.0, -3.0], np.float32)
    greedy = sampler(temperature=temperature)

    distribution = greedy.distribution(row, EMPTY)

    assert 0.0 == greedy.temperature
    assert OneHot(1) == distribution


@pytest.mark.parametrize("temperature", [1e39, 1e300])
def test_huge_temperature_is_uniform(temperature) -> None:
    row = np.array([1.0, 7.0, -3.0, 0.0], np.float32)

    distribution = sampler(temperature=temperature).distribution(row, EMPTY)

    assert [0.25] * 4 == pytest.approx([distribution.probability(token) for token in range(4)])


def test_greedy_row_with_penalties_is_the_argmax_of_the_penalised_row() -> None:
    row = np.array([1.0, 3.0, 2.0], np.float32)

    distribution = sampler(presence_penalty=1.5).distribution(row, History((), (1,)))

    assert OneHot(2) == distribution


def test_sampled_row_is_sparse() -> None:
    row = np.arange(1000, dtype=np.float32)

    distribution = sampler(1000, temperature=1.0, top_k=3).distribution(row, EMPTY)

    assert isinstance(distribution, Kept)
    assert [997, 998, 999] == distribution.ids.tolist()


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize(
    "row", [[0.0, np.nan, 1.0], [0.0, np.inf, 1.0], [-np.inf, -np.inf, -np.inf]]
)
def test_row_that_cannot_be_sampled_is_an_error(temperature, row) -> None:
    with pytest.raises(InvalidLogits, match="no finite maximum"):
        sampler(temperature=temperature).distribution(np.array(row, np.float32), EMPTY)


def test_sampler_is_a_value_that_committed_tokens_leave_alone() -> None:
    state = sampler(temperature=0.7)

    assert state is state.advance(OneHot(1), 1)
    assert state == sampler(temperature=0.7)
    assert not state.grammar_is_complete()
    assert not state.prefix_is_complete((1, 2))
    assert state.supports_optimistic_promotion


@pytest.mark.parametrize(
    ("overrides", "is_plain"),
    [
        ({}, True),
        ({"temperature": 1.0}, False),
        ({"repetition_penalty": 1.1}, False),
        ({"repetition_penalty": 1.1, "repeat_last_n": 0}, True),
        ({"presence_penalty": 0.1}, False),
        ({"top_k": 1}, True),
    ],
)
def test_plain_argmax_is_known_from_the_settings(overrides, is_plain) -> None:
    assert is_plain == sampler(**overrides).is_plain_argmax
