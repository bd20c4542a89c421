"""XTC: when it acts, what it drops, and that draft and target agree on it."""

import numpy as np
import pytest

from engines.sampling.kept import Kept
from engines.sampling.row_sampler import RowSampler
from engines.sampling.xtc import Xtc
from service.generation.randomness import AddressedRandomness
from service.speculation.contract import History

COINS = AddressedRandomness(b"xtc tests")
FIRST = COINS.at(0)


def thinned(*weights: float, probability: float = 1.0, threshold: float = 0.2) -> dict[int, float]:
    kept = Kept.of_weights(np.arange(len(weights)), np.array(weights))
    result = Xtc(probability, threshold, COINS).thin(kept, 0)
    return dict(zip(result.ids.tolist(), result.probabilities.tolist(), strict=True))


def test_all_above_the_threshold_go_but_the_least_likely() -> None:
    assert {2: 0.2 / 0.3, 3: 0.1 / 0.3} == pytest.approx(thinned(0.4, 0.3, 0.2, 0.1))


def test_one_token_above_the_threshold_stays() -> None:
    assert [0, 1, 2] == list(thinned(0.7, 0.2, 0.1, threshold=0.5))


def test_token_at_the_threshold_is_one_of_those_above_it() -> None:
    assert [3] == list(thinned(0.5, 0.25, 0.125, 0.125, threshold=0.125))
    assert [1, 2, 3] == list(thinned(0.5, 0.25, 0.125, 0.125, threshold=0.25))


def test_of_equal_tokens_the_last_stays() -> None:
    assert [2, 3] == list(thinned(0.3, 0.3, 0.3, 0.1))


def test_acts_only_where_the_coin_is_below_the_probability() -> None:
    assert [0, 1] == list(thinned(0.5, 0.5, probability=FIRST))
    assert [1] == list(thinned(0.5, 0.5, probability=np.nextafter(FIRST, 1.0)))


def test_coin_of_a_position_is_the_same_for_draft_and_target() -> None:
    """Whatever their logits: the coin shapes both distributions, or neither."""
    sampler = RowSampler(1.0, xtc=Xtc(0.5, 0.1, COINS))
    target, draft = (np.array(row, np.float32) for row in ([1.0, 1.1, 0.0], [0.5, 0.0, 0.6]))

    acts = []
    for position in range(200):
        history = History((), (0,) * position)
        sizes = {len(sampler.distribution(row, history).ids) for row in (target, draft)}
        assert 1 == len(sizes)
        acts.append(sizes == {1})

    assert acts == [COINS.at(position) < 0.5 for position in range(200)]
    assert 70 < sum(acts) < 130
