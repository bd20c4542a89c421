"""DRY: which runs count, how long they are, and what prolonging them costs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.sampling.dry import Dry
from engines.sampling.logits import LARGEST
from service.speculation.contract import History
from tests.engines.sampling.reference import DryRule, dry_losses

SIZE = 10


def losses(
    prompt,
    generated=(),
    *,
    rule: DryRule | None = None,
    last_n: int = -1,
    size: int = SIZE,
) -> dict[int, float]:
    """Return what each token's logit loses, where it loses anything."""
    rule = rule or DryRule(multiplier=1.0)
    dry = Dry(rule.multiplier, rule.base, rule.allowed_length, last_n, rule.breakers)
    row = dry.apply(np.zeros(size, np.float32), History(prompt, generated))
    return {token: -float(row[token]) for token in np.flatnonzero(row).tolist()}


def test_longer_run_costs_exponentially_more() -> None:
    """After 1 2 3 the run before 4 is three tokens long: 2 ^ (3 - 1)."""
    assert {4: 4.0} == losses((1, 2, 3, 4, 9), (1, 2, 3))


def test_run_spans_prompt_and_output() -> None:
    assert {4: 2.0} == losses((2, 3, 4, 9, 2), (3,))


def test_longest_run_of_a_token_counts() -> None:
    """Both places are followed by 4; before one stands 3 alone, before the other 2 and 3."""
    assert {4: 2.0} == losses((2, 3, 4, 9, 3, 4, 2, 3))


def test_every_token_that_followed_a_run_pays_for_its_own() -> None:
    assert {4: 2.0, 5: 1.0} == losses((2, 3, 4, 9, 3, 5, 2, 3))


def test_run_shorter_than_allowed_is_free() -> None:
    history = (1, 2, 3, 4, 9, 1, 2, 3)

    assert {4: 1.0} == losses(history, rule=DryRule(1.0, allowed_length=3))
    assert {} == losses(history, rule=DryRule(1.0, allowed_length=4))


def test_run_may_overlap_itself() -> None:
    """Four equal tokens end in a run of three that occurred one place before."""
    assert {7: 4.0} == losses((7, 7, 7, 7))


def test_breaker_ends_a_run_and_is_no_part_of_it() -> None:
    """Of 1 0 3 only the 3 behind the breaker counts."""
    rule = DryRule(1.0, breakers=frozenset({0}))

    assert {4: 1.0} == losses((1, 0, 3, 4, 9, 1, 0, 3), rule=rule)
    assert {4: 4.0} == losses((1, 0, 3, 4, 9, 1, 0, 3))


def test_nothing_is_a_run_behind_a_breaker() -> None:
    rule = DryRule(1.0, breakers=frozenset({3}))

    assert {} == losses((2, 3, 4, 2, 3), rule=rule)


def test_only_the_last_tokens_are_looked_at() -> None:
    """Of eight tokens the last six hold no earlier 2, and the run is one token long."""
    history = (1, 2, 3, 4, 9, 1, 2, 3)

    assert {4: 4.0} == losses(history, last_n=8)
    assert {4: 1.0} == losses(history, last_n=6)
    assert {} == losses(history, last_n=5)


def test_run_is_followed_back_fifty_tokens() -> None:
    period = tuple(range(60))
    rule = DryRule(1.0, base=1.0 + 2**-6)

    assert {0: (1.0 + 2**-6) ** 49} == pytest.approx(losses(period * 2, rule=rule, size=60))


def test_penalty_beyond_any_number_saturates() -> None:
    """A token that must not come is still better than a forbidden one."""
    rule = DryRule(1e300, base=1e300)
    dry = Dry(rule.multiplier, rule.base, 1, -1)

    row = dry.apply(np.array([0.0, -np.inf], np.float32), History((0,) * 9, (1, 0, 0)))

    assert [-LARGEST, -np.inf] == row.tolist()


def test_run_ends_where_the_history_begins() -> None:
    """The first 3 has nothing before it, so nothing there can equal the 3 before the last."""
    assert {3: 1.0, 4: 1.0} == losses((3, 4, 3, 3))


def test_history_of_one_token_has_no_run() -> None:
    assert {} == losses(()) == losses((3,))


def test_tokens_beyond_the_row_are_no_candidates() -> None:
    """A draft's vocabulary may be shorter than the target's."""
    assert {4: 1.0} == losses((3, 99, 3, 4, 3))


@given(
    tokens=st.lists(st.integers(0, 3), max_size=70).map(tuple),
    rule=st.builds(
        DryRule,
        multiplier=st.just(0.5),
        base=st.sampled_from([1.0, 1.25]),
        allowed_length=st.integers(1, 3),
        breakers=st.frozensets(st.integers(0, 3), max_size=1),
    ),
    cut=st.integers(0, 70),
)
def test_losses_are_those_of_the_definition(tokens, rule, cut) -> None:
    expected = dry_losses(tokens, rule)

    assert expected == pytest.approx(losses(tokens[:cut], tokens[cut:], rule=rule), rel=1e-5)
