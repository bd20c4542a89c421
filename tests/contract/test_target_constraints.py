"""Constraints: every row is masked at its own history, and nothing rejected leaves a trace."""

from dataclasses import replace

import pytest

from service.errors import NothingAllowed
from tests.contract.constraints import Outputs, Stripes
from tests.contract.lanes import (
    Sure,
    assert_same_rows,
    commit,
    feed_prompt,
    next_rows,
    open_lane,
    verify,
)
from tests.neutral import SAMPLED

PROMPT = (7, 3, 11)
END = 30
ENDS = frozenset({END})
STRIPES = Stripes()
LEGAL = STRIPES.walk(21, 4, 9, 9, 2, 5)
GREEDY = replace(SAMPLED, do_sample=False, temperature=0.0)
BOTH = pytest.mark.parametrize("config", [SAMPLED, GREEDY], ids=["sampled", "greedy"])


def possible(row) -> set[int]:
    return {token for token, probability in enumerate(row) if probability > 0.0}


def after(*tokens: int) -> Stripes:
    """Return the constraint after an output."""
    state = STRIPES
    for token in tokens:
        state = state.after(token)
    return state


@BOTH
def test_first_row_is_masked_at_the_beginning(target, config) -> None:
    lane = open_lane(target, PROMPT, config=config, constraint=STRIPES)
    target.restore(lane.slot, 0)

    assert possible(feed_prompt(lane)) <= STRIPES.permitted()


@BOTH
def test_rows_of_a_block_are_masked_each_at_its_own_history(target, config) -> None:
    lane = open_lane(target, PROMPT, *LEGAL[:2], config=config, constraint=STRIPES)

    rows = next_rows(lane, *LEGAL[2:])

    for row, probabilities in enumerate(rows):
        permitted = after(*LEGAL[: 2 + row]).permitted()
        assert possible(probabilities) <= permitted
        assert config is GREEDY or possible(probabilities)


@BOTH
def test_masked_rows_of_a_block_are_those_of_plain_steps(engine, target, config) -> None:
    block = open_lane(target, PROMPT, LEGAL[0], config=config, constraint=STRIPES)
    plain = open_lane(target, PROMPT, LEGAL[0], config=config, constraint=STRIPES)
    rows = next_rows(block, *LEGAL[1:])

    for token, row in zip(LEGAL[1:], rows, strict=False):
        output = verify(target, (plain, ())).output
        assert_same_rows(plain.rows(output, 0, 1), [row], engine.tolerance)
        commit(target, output, plain.kept(1))
        plain.generated = (*plain.generated, token)


@BOTH
def test_mask_keeps_the_proportions_of_what_it_permits(target, config) -> None:
    """A mask forbids and does nothing else: the likeliest permitted token stays the likeliest."""
    lane = open_lane(target, PROMPT, *LEGAL[:2], config=config, constraint=STRIPES)
    (masked,) = next_rows(lane)
    rows = verify(target, (lane, ())).output.rows(0)

    scores = {
        token: rows.raw_logprob(0, token, 0).logprob for token in after(*LEGAL[:2]).permitted()
    }

    likeliest = max(scores, key=lambda token: (scores[token], -token))
    assert likeliest == max(range(len(masked)), key=lambda token: (masked[token], -token))


@BOTH
@pytest.mark.parametrize("bad", [0, 1, 2])
def test_illegal_proposal_has_no_probability_and_spoils_no_row_before_it(
    engine, target, config, bad
) -> None:
    """B31: a draft that breaks the grammar is rejected like any other; only rows behind it fail."""
    lane = open_lane(target, PROMPT, LEGAL[0], config=config, constraint=STRIPES)
    legal = next_rows(lane, *LEGAL[1:])
    block = list(LEGAL[1:])
    block[bad] = next(t for t in range(50) if not after(*LEGAL[: 1 + bad]).permits(t))

    output = verify(target, (lane, tuple(block))).output

    rows = lane.rows(output, 0, 1 + bad)
    assert_same_rows(legal[: 1 + bad], rows, engine.tolerance)
    assert 0.0 == rows[bad][block[bad]]
    with pytest.raises(NothingAllowed) as caught:
        output.rows(0).distribution(1 + bad, lane.sampler)
    assert (2 + bad, ("chat.tools",)) == (caught.value.position, caught.value.fields)
    with pytest.raises(NothingAllowed):
        output.rows(0).logprob(1 + bad, lane.sampler, 4, 1)


@BOTH
def test_rejected_proposals_leave_no_trace_in_the_constraint(engine, target, config) -> None:
    """What follows a rejection is as if nothing else had been proposed."""
    lane = open_lane(target, PROMPT, LEGAL[0], config=config, constraint=STRIPES)
    illegal = tuple(token ^ 1 for token in LEGAL[2:4])
    for block, kept in (((*LEGAL[1:2], *illegal), 2), ((LEGAL[2] ^ 1, 3, 3), 1)):
        output = verify(target, (lane, block)).output
        lane.rows(output, 0, 1)
        commit(target, output, lane.kept(kept))
        lane.generated = LEGAL[: len(lane.generated) + kept]

    fresh = open_lane(target, PROMPT, *LEGAL[:4], config=config, constraint=STRIPES)

    assert lane.generated == fresh.generated
    assert_same_rows(next_rows(fresh, *LEGAL[4:]), next_rows(lane, *LEGAL[4:]), engine.tolerance)


@BOTH
def test_rows_do_not_depend_on_how_far_the_state_was_advanced(engine, target, config) -> None:
    """The core hands a row the state at the round's start or that of the row itself."""
    lane = open_lane(target, PROMPT, LEGAL[0], config=config, constraint=STRIPES)
    output = verify(target, (lane, LEGAL[1:])).output
    rows, start = output.rows(0), lane.sampler
    vocabulary = range(target.limits.vocabulary_size)
    walking = start

    for row, token in enumerate((*LEGAL[1:], None)):
        states = (start, walking, lane.fresh)
        seen = [rows.distribution(row, state) for state in states]
        assert 1 == len({tuple(map(one.probability, vocabulary)) for one in seen})
        if token is not None:
            walking = walking.advance(seen[0], token)


@BOTH
def test_lane_with_nothing_left_spares_the_others(engine, target, config) -> None:
    """B29: its rows alone are refused, by field and position; its slot goes on to be used."""
    spared = open_lane(target, PROMPT, LEGAL[0], config=config, constraint=STRIPES)
    alone = next_rows(spared, *LEGAL[1:])
    stuck = open_lane(target, PROMPT, 21, config=config)
    stuck.constraint = Outputs(((22,),), END)

    output = verify(target, (stuck, (4,)), (spared, LEGAL[1:])).output

    with pytest.raises(NothingAllowed) as caught:
        output.rows(0).distribution(0, stuck.sampler)
    assert (1, ("settings.constraint",)) == (caught.value.position, caught.value.fields)
    assert_same_rows(alone, spared.rows(output, 1, len(alone)), engine.tolerance)
    assert output.rows(0).raw_logprob(0, 4, 1).alternatives
    output.release()
    for lane in (stuck, spared):
        target.restore(lane.slot, lane.base)
    stuck.constraint = None
    next_rows(stuck, 4)


@pytest.mark.parametrize(
    ("config", "constraint", "fields"),
    [
        (
            replace(GREEDY, min_new_tokens=9),
            Outputs(((21,),), END),
            ("settings.constraint", "settings.min_new_tokens"),
        ),
        (
            replace(SAMPLED, banned_token_ids=frozenset({22})),
            Outputs(((21, 22),), END),
            ("settings.constraint", "settings.banned_token_ids"),
        ),
        (
            replace(SAMPLED, allowed_token_ids=frozenset({END}), min_new_tokens=9),
            None,
            ("settings.allowed_token_ids", "settings.min_new_tokens"),
        ),
        (
            replace(GREEDY, allowed_token_ids=frozenset({23})),
            Outputs(((21, 22),), END),
            ("settings.constraint", "settings.allowed_token_ids"),
        ),
    ],
)
def test_nothing_left_names_every_setting_that_took_part(
    target, config, constraint, fields
) -> None:
    lane = open_lane(target, PROMPT, 21, ends=ENDS)
    lane.config, lane.constraint = config, constraint
    output = verify(target, (lane, ())).output

    with pytest.raises(NothingAllowed) as caught:
        output.rows(0).distribution(0, lane.sampler)

    assert (1, set(fields)) == (caught.value.position, set(caught.value.fields))


def test_complete_output_leaves_the_end_alone(target) -> None:
    constraint = Outputs(((21, 22), (21, 23, 24)), END)
    lane = open_lane(target, PROMPT, 21, config=SAMPLED, constraint=constraint, ends=ENDS)

    rows = next_rows(lane, 22)

    assert [{22, 23}, {END}] == list(map(possible, rows))


def test_state_says_when_the_output_is_complete(target) -> None:
    """Committed or tentative; an end token after it changes nothing."""
    constraint = Outputs(((21, 22), (21, 22, 24), (23,)), END)
    state = open_lane(target, PROMPT, constraint=constraint, ends=ENDS).fresh

    tentative = [state.prefix_is_complete(o) for o in ((21,), (21, 22), (21, 22, 24), (23,), (9,))]
    committed = []
    for token in (23, END):
        state = state.advance(Sure(token), token)
        committed.append(state.grammar_is_complete())

    assert [False, False, True, True, False] == tentative
    assert [True, True] == committed


def test_state_says_what_may_follow(target) -> None:
    """What settings or constraint forbid may not; what is merely unlikely may."""
    constraint = Outputs(((21, 22), (23,)), END)
    config = replace(SAMPLED, banned_token_ids=frozenset({23}), top_k=1)
    held = open_lane(target, PROMPT, config=config, constraint=constraint, ends=ENDS).fresh
    assert [True, False, False] == [held.may_follow((), token) for token in (21, 22, 23)]
    assert [True, False] == [held.may_follow((21,), token) for token in (22, 23)]
    assert held.may_follow((21, 22), END)
    assert held.advance(Sure(21), 21).may_follow((21,), 22)
    config = replace(SAMPLED, min_new_tokens=2, top_k=1)
    free = open_lane(target, PROMPT, config=config, ends=ENDS).fresh
    assert [False, False, True] == [free.may_follow((9,) * said, END) for said in range(3)]
    assert all(free.may_follow((), token) for token in range(END))
    assert not free.may_follow((), target.limits.vocabulary_size)
