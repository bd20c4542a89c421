"""Settings at the history of each row: a block's rows are those of plain steps."""

import math
from dataclasses import replace

import pytest

from service.generation.randomness import AddressedRandomness
from service.generation.sampling import DrySettings, MirostatSettings, SamplerOrder, XtcSettings
from tests.contract.lanes import (
    Row,
    Sure,
    assert_same_rows,
    commit,
    next_rows,
    open_lane,
    row_of,
    verify,
)
from tests.neutral import SAMPLED

PROMPT = (7, 3, 11, 4, 9)
BLOCK = (4, 9, 4, 9, 1)
COINS = AddressedRandomness(b"contract suite")
GREEDY = replace(SAMPLED, do_sample=False, temperature=0.0)
END = 30
# The engine wants these tokens before all others, whatever its weights say.
WANTS = {9: 100.0, END: 200.0}

SETTINGS = {
    "temperature": {"temperature": 0.6},
    "top-k": {"top_k": 3},
    "top-p": {"top_p": 0.6},
    "min-p": {"min_p": 0.2},
    "top-a": {"top_a": 0.8},
    "typical-p": {"typical_p": 0.6},
    "temperature-last": {
        "temperature": 1.5,
        "top_p": 0.7,
        "sampler_order": SamplerOrder.TEMPERATURE_LAST,
    },
    "xtc": {"xtc": XtcSettings(probability=0.5, threshold=0.01)},
    "repetition": {"repetition_penalty": 1.6},
    "repetition-window": {"repetition_penalty": 1.6, "repeat_last_n": 3},
    "frequency": {"frequency_penalty": 0.9},
    "presence": {"presence_penalty": 0.9, "repeat_last_n": -1},
    "dry": {"dry": DrySettings(multiplier=2.0, allowed_length=1)},
    "bias": {"logit_bias": {2: 3.0, 12: -3.0}},
    "allowed": {"allowed_token_ids": frozenset(range(1, 60, 2))},
    "banned": {"banned_token_ids": frozenset(range(0, 60, 2))},
    "everything": {
        "temperature": 1.3,
        "top_k": 60,
        "top_p": 0.95,
        "min_p": 0.001,
        "top_a": 0.01,
        "typical_p": 0.95,
        "xtc": XtcSettings(probability=0.5, threshold=0.02),
        "repetition_penalty": 1.2,
        "frequency_penalty": 0.3,
        "presence_penalty": 0.2,
        "dry": DrySettings(multiplier=0.8, allowed_length=1),
        "logit_bias": {4: 2.0},
        "banned_token_ids": frozenset({6, 7}),
    },
}


def plain_rows(lane, *tokens: int) -> list[Row]:
    """Return the rows of plain steps that commit these tokens one by one."""
    rows = []
    for token in (*tokens, None):
        output = verify(lane.target, (lane, ())).output
        rows += lane.rows(output, 0, 1)
        commit(lane.target, output, lane.kept(1))
        if token is not None:
            lane.generated = (*lane.generated, token)
    return rows


@pytest.mark.parametrize("greedy", [False, True], ids=["sampled", "greedy"])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())
def test_rows_of_a_block_are_those_of_plain_steps(engine, target, settings, greedy) -> None:
    """B26: position i of a block sees the drafts before it, each once; rejected ones leave none."""
    config = replace(SAMPLED, **settings)
    if greedy:
        config = replace(config, do_sample=False, temperature=0.0)
    state = {"config": config, "coins": None if greedy else COINS, "breakers": frozenset({11})}
    block, plain = (open_lane(target, PROMPT, 21, **state) for _ in range(2))
    next_rows(block, 9, 9, 9)

    rows = next_rows(block, *BLOCK)

    assert_same_rows(plain_rows(plain, *BLOCK), rows, engine.tolerance)


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())
def test_setting_changes_rows(target, settings) -> None:
    """Each of the settings here does something on every engine."""
    lane = open_lane(target, PROMPT, 21, coins=COINS, breakers=frozenset({11}))
    before = next_rows(lane, *BLOCK)

    lane.config = replace(SAMPLED, **settings)

    assert before != next_rows(lane, *BLOCK)


@pytest.mark.parametrize(("said", "least"), [(1, 3), (1, 6), (2, 1), (3, 4), (1, 99)])
def test_least_tokens_hold_the_end_back_by_the_rows_own_count(target, said, least) -> None:
    """B19: an engine that always wants the end gets it in the first row that may have it."""
    config = replace(GREEDY, min_new_tokens=least, logit_bias=WANTS)
    lane = open_lane(target, PROMPT, *(21,) * said, config=config, ends=frozenset({END}))

    rows = next_rows(lane, *BLOCK)

    for row, probabilities in enumerate(rows):
        expected = END if said + row >= least else 9
        assert 1.0 == probabilities[expected]


def test_padding_is_never_chosen(target) -> None:
    """B10: ids from the request's vocabulary on have no probability in any row."""
    config = replace(SAMPLED, logit_bias={12: 1.0})
    lane = open_lane(target, PROMPT, 21, vocabulary=25, config=config)

    for row in next_rows(lane, 4, 9):
        assert 0.0 == math.fsum(row[25:])
        assert pytest.approx(1.0, abs=1e-5) == math.fsum(row)


def test_coin_of_a_position_is_everyones(target) -> None:
    """Rows of one position under one request have one coin: the draft's and the target's."""
    # So hot that both tokens have about one half, and one is left where XTC acts.
    config = replace(SAMPLED, temperature=1e3, allowed_token_ids=frozenset({4, 9}))
    config = replace(config, xtc=XtcSettings(probability=0.5, threshold=0.3))
    lane = open_lane(target, PROMPT, 21, config=config, coins=COINS)

    rows = next_rows(lane, *BLOCK)

    expected = [1 if COINS.at(1 + row) < 0.5 else 2 for row in range(len(rows))]
    assert expected == [sum(probability > 0.0 for probability in row) for row in rows]
    assert {1, 2} == set(expected)


@pytest.mark.parametrize("tokens", [(4,), (9, 9)])
@pytest.mark.parametrize("eta", [0.5, 2.0])
def test_mirostat_moves_with_every_committed_token(target, tokens, eta) -> None:
    """μ is twice tau at first; the rows keep what surprises at most μ, or the likeliest."""
    config = replace(SAMPLED, mirostat=MirostatSettings(version=2, tau=1.0, eta=eta))
    lane = open_lane(target, PROMPT, config=config)
    lane.generated = (21,)
    output = verify(target, (lane, tokens)).output
    rows, sampler, mu = output.rows(0), lane.fresh, 2.0

    for row, token in enumerate((*tokens, 1)):
        distribution = rows.distribution(row, sampler)
        scores = rows.raw_logprob(row, 0, target.limits.vocabulary_size).alternatives
        raw = {token: -logprob / math.log(2.0) for token, logprob in scores}
        clear = {t: bits for t, bits in raw.items() if abs(bits - mu) > 1e-3}
        kept = {t for t in clear if distribution.probability(t) > 0.0}
        assert {t for t, bits in clear.items() if bits <= mu} <= kept
        assert {t for t in kept if raw[t] > mu} <= {min(raw, key=raw.__getitem__)}
        surprising = distribution.sample(0.999)
        chosen = surprising if row == 0 else token
        taken = distribution if row == 0 else Sure(token)
        mu -= eta * (-math.log2(taken.probability(chosen)) - 1.0)
        sampler = sampler.advance(taken, chosen)


@pytest.mark.parametrize("version", [1, 2])
def test_branches_are_promoted_unless_mirostat_acts(target, version) -> None:
    settings = MirostatSettings(version=version)
    acting = open_lane(target, PROMPT, config=replace(SAMPLED, mirostat=settings))
    greedy = open_lane(target, PROMPT, config=replace(GREEDY, mirostat=settings))
    plain = open_lane(target, PROMPT)

    promoted = [lane.fresh.supports_optimistic_promotion for lane in (acting, greedy, plain)]

    assert [False, True, True] == promoted


def test_mirostat_has_no_effect_at_temperature_zero(target) -> None:
    mirostat = MirostatSettings(version=2, tau=0.1, eta=5.0)
    lane, plain = (
        open_lane(target, PROMPT, 21, config=config)
        for config in (replace(GREEDY, mirostat=mirostat), GREEDY)
    )

    assert next_rows(plain, *BLOCK) == next_rows(lane, *BLOCK)


def test_one_lanes_settings_are_not_anothers(engine, target) -> None:
    """Lanes with all kinds of settings share a pass."""
    configs = [
        GREEDY,
        replace(SAMPLED, **SETTINGS["everything"]),
        replace(GREEDY, logit_bias=WANTS),
        SAMPLED,
    ]
    lanes = [open_lane(target, PROMPT, 21, config=each, coins=COINS) for each in configs]
    alone = [next_rows(lane, *BLOCK) for lane in lanes]

    output = verify(target, *((lane, BLOCK) for lane in lanes)).output

    for index, lane in enumerate(lanes):
        rows = lane.rows(output, index, 1 + len(BLOCK))
        assert_same_rows(alone[index], rows, engine.tolerance)
        assert all(
            pytest.approx(1.0, abs=1e-5) == math.fsum(row_of(d, len(rows[0])))
            for d in [output.rows(index).distribution(0, lane.sampler)]
        )
