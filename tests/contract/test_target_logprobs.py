"""Log-probabilities of rows: the processed ones, and the model's own."""

import math
from dataclasses import replace

import pytest

from tests.contract.constraints import Stripes
from tests.contract.lanes import commit, open_lane, verify
from tests.neutral import SAMPLED

PROMPT = (7, 3, 11)
BLOCK = (4, 9, 1)
GREEDY = replace(SAMPLED, do_sample=False, temperature=0.0)
SETTINGS = {
    "plain": {"config": SAMPLED},
    "warm": {"config": replace(SAMPLED, temperature=1.7, presence_penalty=0.5)},
    "truncated": {"config": replace(SAMPLED, temperature=0.7, top_k=5, top_p=0.9)},
    "banned": {"config": replace(SAMPLED, banned_token_ids=frozenset(range(0, 250, 2)))},
    "constrained": {"config": SAMPLED, "constraint": Stripes()},
}
BOTH = {
    **SETTINGS,
    "greedy": {"config": replace(GREEDY, repetition_penalty=1.3)},
    "greedy-constrained": {"config": GREEDY, "constraint": Stripes()},
}


def cases(table):
    return pytest.mark.parametrize("settings", table.values(), ids=table.keys())


def block_of(settings):
    """Return a first token and proposals that the settings permit."""
    constraint = settings.get("constraint")
    return (21, *BLOCK) if constraint is None else constraint.walk(21, *BLOCK)


def verified(target, settings):
    """Return a lane with such settings, and the rows of one round of it."""
    first, *block = block_of(settings)
    lane = open_lane(target, PROMPT, first, **settings)
    return lane, verify(target, (lane, tuple(block))).output.rows(0)


def scores_of(rows, lane, row):
    """Return every token with probability and its log-probability."""
    likeliest = rows.distribution(row, lane.sampler).sample(None)
    everything = lane.target.limits.vocabulary_size
    return dict(rows.logprob(row, lane.sampler, likeliest, everything).alternatives)


def raw_scores_of(rows, lane, row):
    """Return every token and its log-probability in the model's own distribution."""
    return dict(rows.raw_logprob(row, 0, lane.target.limits.vocabulary_size).alternatives)


@cases(SETTINGS)
def test_logprob_is_that_of_the_processed_distribution(target, settings) -> None:
    """B25: it belongs to the very row that the token is sampled from."""
    lane, rows = verified(target, settings)

    for row in range(1 + len(BLOCK)):
        distribution = rows.distribution(row, lane.sampler)
        scores = scores_of(rows, lane, row)
        for token in range(target.limits.vocabulary_size):
            probability = math.exp(scores[token]) if token in scores else 0.0
            assert pytest.approx(distribution.probability(token), abs=1e-6) == probability
        for token in (*list(scores)[:3], min(scores, key=scores.__getitem__)):
            assert scores[token] == rows.logprob(row, lane.sampler, token, 0).logprob


def test_logprob_at_temperature_zero_is_of_the_logits_that_are_permitted(target) -> None:
    """What is forbidden shares its probability out; nothing else of the row moves."""
    banned = frozenset(range(0, 250, 3))
    config = replace(GREEDY, banned_token_ids=banned, top_k=3, top_p=0.5, min_p=0.5)
    lane, rows = verified(target, {"config": config})

    raw, scores = raw_scores_of(rows, lane, 1), scores_of(rows, lane, 1)

    left = {token: value for token, value in raw.items() if token not in banned}
    total = math.log(math.fsum(map(math.exp, left.values())))
    assert {token: value - total for token, value in left.items()} == pytest.approx(
        scores, abs=1e-4
    )
    chosen = rows.distribution(1, lane.sampler).sample(None)
    assert max(left, key=lambda token: (left[token], -token)) == chosen


def test_raw_logprob_is_the_models_own(target) -> None:
    """No setting has a say in it."""
    lane, plain = verified(target, SETTINGS["plain"])
    _, rows = verified(target, {"config": replace(GREEDY, logit_bias={5: 9.0}, top_k=1)})

    for row in range(1 + len(BLOCK)):
        scores = raw_scores_of(rows, lane, row)
        assert raw_scores_of(plain, lane, row) == scores
        for token in (0, 9, 21, 200):
            assert scores[token] == rows.raw_logprob(row, token, 0).logprob


def test_raw_logprob_is_the_logarithm_of_the_softmax(target) -> None:
    """Nothing else of the row is known from outside than its distribution without settings."""
    lane, rows = verified(target, SETTINGS["plain"])

    for row in range(1 + len(BLOCK)):
        distribution, scores = rows.distribution(row, lane.sampler), raw_scores_of(rows, lane, row)
        assert pytest.approx(1.0, abs=1e-5) == math.fsum(map(math.exp, scores.values()))
        for token in range(target.limits.vocabulary_size):
            probability = distribution.probability(token)
            assert pytest.approx(probability, abs=1e-6) == math.exp(scores[token])


@cases(BOTH)
@pytest.mark.parametrize("count", [0, 1, 3, 20])
def test_alternatives_are_the_likeliest_in_order(target, settings, count) -> None:
    """B25: sorted, the lower id first among equals, as many as have probability."""
    lane, rows = verified(target, settings)
    scores = scores_of(rows, lane, 1)
    expected = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:count]
    token = max(scores, key=lambda token: (scores[token], -token))

    scored = rows.logprob(1, lane.sampler, token, count)

    assert scores[token] == scored.logprob
    assert [each for each, _ in expected] == [each for each, _ in scored.alternatives]
    assert [value for _, value in expected] == pytest.approx(
        [value for _, value in scored.alternatives], abs=1e-6
    )


@cases(BOTH)
@pytest.mark.parametrize("count", [1, 2])
def test_unlikely_token_is_among_its_own_alternatives(target, settings, count) -> None:
    """It comes behind the likeliest, of which it hides none."""
    lane, rows = verified(target, settings)
    scores = scores_of(rows, lane, 1)
    token = min(scores, key=lambda token: (scores[token], -token))
    others = sorted(scores, key=lambda token: (-scores[token], token))[:count]

    scored = rows.logprob(1, lane.sampler, token, count)

    listed = [each for each, _ in scored.alternatives]
    assert listed == (others if token in others else [*others, token])
    assert scored.alternatives[-1] == (token, scored.logprob)


def test_raw_alternatives_hold_the_token_that_was_asked_for(target) -> None:
    _, rows = verified(target, SETTINGS["plain"])

    for token in (0, 21, 200):
        scored = rows.raw_logprob(0, token, 3)
        values = [value for _, value in scored.alternatives]
        assert (token, scored.logprob) in scored.alternatives
        assert sorted(values, reverse=True) == values
        assert len(values) == 3 + (token not in [each for each, _ in scored.alternatives[:3]])


@cases(BOTH)
def test_logprobs_of_a_block_are_those_of_plain_steps(engine, target, settings) -> None:
    """B25: each row of a block scores as if the tokens before it had come one by one."""
    lane, rows = verified(target, settings)
    block = block_of(settings)[1:]
    plain = open_lane(target, PROMPT, block_of(settings)[0], **settings)

    for row in range(1 + len(block)):
        output = verify(target, (plain, ())).output
        alone = output.rows(0)
        token = alone.distribution(0, plain.sampler).sample(None)
        expected = alone.logprob(0, plain.sampler, token, 3)
        scored = rows.logprob(row, lane.sampler, token, 3)
        assert pytest.approx(expected.logprob, abs=engine.tolerance) == scored.logprob
        assert [t for t, _ in expected.alternatives] == [t for t, _ in scored.alternatives]
        commit(target, output, plain.kept(1))
        plain.generated = (*plain.generated, *block[row : row + 1])
