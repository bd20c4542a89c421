"""DRY by hand: the longer the run that a token would continue, the more it costs."""

import pytest

from engines.scripted.dry import LONGEST_RUN, dry_penalties
from service.generation.sampling import DrySettings
from service.speculation.contract import History
from tests.engines.scripted.rows import kept
from tests.neutral import GREEDY

DRY = DrySettings(multiplier=0.8, base=2.0, allowed_length=2)
NO_BREAKERS: frozenset[int] = frozenset()


def penalties(*recent: int, breakers=(), settings: DrySettings = DRY):
    return dry_penalties(recent, settings, frozenset(breakers))


@pytest.mark.parametrize(
    ("recent", "expected"),
    [
        ((1, 2, 3, 9, 2), {}),
        ((1, 2, 3, 9, 1, 2), {3: 0.8}),
        ((8, 1, 2, 3, 8, 1, 2), {3: 1.6}),
        ((7, 8, 1, 2, 3, 7, 8, 1, 2), {3: 3.2}),
        ((), {}),
        ((1,), {}),
    ],
)
def test_penalty_grows_with_the_run(recent, expected) -> None:
    assert pytest.approx(expected) == penalties(*recent)


def test_longest_of_several_runs_counts() -> None:
    """Token 3 followed the run 1 2 twice, once of them after an 8."""
    assert {3: 1.6} == penalties(1, 2, 3, 8, 1, 2, 3, 5, 8, 1, 2)


def test_run_may_have_several_continuations() -> None:
    assert {3: 0.8, 4: 0.8} == penalties(1, 2, 3, 1, 2, 4, 1, 2)


def test_run_may_overlap_its_repetition() -> None:
    """Four equal tokens: the last three repeat the first three, and the next would go on."""
    assert {5: 1.6} == penalties(5, 5, 5, 5)


def test_breaker_ends_a_run_and_belongs_to_none() -> None:
    assert {3: 0.8} == penalties(8, 0, 1, 2, 3, 8, 0, 1, 2, breakers=(0,))
    assert {} == penalties(8, 1, 0, 2, 3, 8, 1, 0, 2, breakers=(0,))
    assert {} == penalties(8, 1, 2, 3, 8, 1, 2, breakers=(2,))


def test_run_is_looked_at_up_to_a_bound() -> None:
    settings = DrySettings(multiplier=1.0, base=1.1, allowed_length=2)
    long = tuple(range(100, 180))

    (penalty,) = penalties(*long, 7, *long, settings=settings).values()

    assert pytest.approx(1.1 ** (LONGEST_RUN - 2)) == penalty


def test_multiplier_of_zero_is_off() -> None:
    assert {} == penalties(1, 1, 1, 1, settings=DrySettings(multiplier=0.0))
    assert {} == dry_penalties((1, 1, 1), None, NO_BREAKERS)


def test_run_covers_the_prompt_within_the_window() -> None:
    """The likeliest token is 1, and it followed 7 8 in the prompt."""
    history = History((7, 8, 1), (5, 7, 8))
    strong = DrySettings(multiplier=9.0, allowed_length=2)

    assert {4} == kept(history, config=GREEDY, dry=strong)
    assert {4} == kept(history, config=GREEDY, dry=strong, repeat_last_n=6)
    assert {1} == kept(history, config=GREEDY, dry=strong, repeat_last_n=5)
    assert {1} == kept(history, config=GREEDY, dry=strong, repeat_last_n=0)
    assert {1} == kept(history, config=GREEDY, dry=strong, breakers=(8,))


def test_penalty_of_any_size_leaves_a_choice() -> None:
    huge = DrySettings(multiplier=1e300, base=1e300, allowed_length=1)

    assert {4} == kept(History((7, 8, 1), (7, 8)), config=GREEDY, dry=huge)
