"""Greedy rows are neither sorted nor softened, whatever the request adds to them."""

from __future__ import annotations

import numpy as np
import pytest

from engines.sampling.one_hot import OneHot
from engines.sampling.row_sampler import RowSampler
from engines.sampling.rows import LaneSpan, rows_of
from service.generation.config import GenerationOverrides, layered_config
from service.generation.sampling import DrySettings
from service.speculation.contract import History, SamplingInput

VOCABULARY = 64
HISTORY = History((1, 2, 3, 1, 2), (3, 1, 2))
SOFTENING = (np.exp, np.exp2, np.expm1, np.log, np.log2, np.log1p)
SORTING = (np.sort, np.argsort, np.partition, np.argpartition, np.lexsort, np.unique)


class Watched(np.ndarray):
    """Logits that may be compared and added to, but not sorted or softened."""

    def __array_ufunc__(self, function, method, *inputs, **how):
        assert function not in SOFTENING
        if "out" in how:
            how["out"] = tuple(map(plain, how["out"]))
        result = getattr(function, method)(*map(plain, inputs), **how)
        return result.view(Watched) if isinstance(result, np.ndarray) else result

    def __array_function__(self, function, types, args, kwargs):
        assert function not in SORTING
        return super().__array_function__(function, types, args, kwargs)

    def _refused(self, *_, **__):
        raise AssertionError("it is sorted")

    sort = argsort = partition = argpartition = _refused


def plain(value: object) -> object:
    return value.view(np.ndarray) if isinstance(value, Watched) else value


def sampler(**settings: object) -> RowSampler:
    config = layered_config(None, GenerationOverrides(**settings))
    ends = frozenset({5})
    return RowSampler.from_input(SamplingInput(config, HISTORY.prompt, VOCABULARY, ends))


def logits(rows: int) -> np.ndarray:
    return np.random.default_rng(3).normal(size=(rows, VOCABULARY)).astype(np.float32)


def tokens_of(lane: RowSampler, rows: np.ndarray) -> list[int]:
    span = LaneSpan(0, lane, HISTORY, (7, 8))
    (read,) = rows_of([span], rows)
    chosen = [read.distribution(row, lane) for row in range(3)]
    assert all(isinstance(each, OneHot) for each in chosen)
    return [each.sample(None) for each in chosen]


ADJUSTED = {
    "nothing": {},
    "penalties": {"repetition_penalty": 1.3, "frequency_penalty": 0.5, "presence_penalty": 0.5},
    "DRY": {"dry": DrySettings(1.0)},
    "bias": {"logit_bias": {3: 1.0, 9: -1.0}},
    "bans": {"banned_token_ids": frozenset({4}), "min_new_tokens": 9},
    "few tokens": {"allowed_token_ids": frozenset(range(20))},
    "truncations, which have no say": {"top_k": 3, "top_p": 0.5, "min_p": 0.1, "typical_p": 0.5},
}


@pytest.mark.parametrize("settings", ADJUSTED.values(), ids=ADJUSTED.keys())
def test_greedy_row_is_neither_sorted_nor_softened(settings) -> None:
    lane, rows = sampler(temperature=0.0, **settings), logits(3)

    assert tokens_of(lane, rows) == tokens_of(lane, rows.view(Watched))


@pytest.mark.parametrize("settings", [{"top_k": 0, "top_p": 1.0, "min_p": 0.0}, {"top_k": 3}])
def test_sampled_row_would_be_noticed(settings) -> None:
    lane = sampler(temperature=1.0, **settings)

    with pytest.raises(AssertionError):
        lane.process(logits(1)[0].view(Watched), HISTORY)
