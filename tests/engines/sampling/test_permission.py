"""What may follow: settings, padding and constraints, at every place of an output."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.sampling.one_hot import OneHot
from engines.sampling.row_sampler import RowSampler
from service.errors import InvalidLogits, NothingAllowed
from service.speculation.contract import History, SamplingInput
from tests.contract.constraints import Outputs, Stripes
from tests.engines.sampling.watched import Watched
from tests.neutral import SAMPLED

SIZE = 12
END = 10
EMPTY = History((), ())
ROW = np.arange(SIZE, dtype=np.float32)
GREEDY = replace(SAMPLED, do_sample=False, temperature=0.0)


def sampler(*, constraint=None, ends=(), vocabulary=SIZE, config=SAMPLED, **settings) -> RowSampler:
    request = SamplingInput(
        config=replace(config, **settings),
        prompt=(),
        vocabulary_size=vocabulary,
        end_token_ids=frozenset(ends),
        constraint=constraint,
    )
    return RowSampler.from_input(request)


def possible(state: RowSampler, *generated: int, row=ROW) -> list[int]:
    """Return the ids that can be drawn after an output."""
    return state.distribution(row, History((), generated)).ids.tolist()


def test_allowed_ids_are_the_only_ones() -> None:
    assert [2, 7] == possible(sampler(allowed_token_ids=frozenset({7, 2})))


def test_banned_ids_never_come() -> None:
    assert [0, 1, 2] == possible(sampler(banned_token_ids=frozenset(range(3, SIZE))))


def test_banned_wins_over_allowed() -> None:
    state = sampler(allowed_token_ids=frozenset({2, 7}), banned_token_ids=frozenset({7}))

    assert [2] == possible(state)


def test_padding_is_never_chosen() -> None:
    """B10: the tail of a padded vocabulary belongs to no token, be it the likeliest."""
    greedy, sampled = (sampler(vocabulary=5, config=config) for config in (GREEDY, SAMPLED))

    assert OneHot(4) == greedy.distribution(ROW, EMPTY)
    assert [0, 1, 2, 3, 4] == possible(sampled)
    assert not sampled.may_follow((), 5)


def test_row_of_a_smaller_draft_is_processed_as_it_is() -> None:
    """B10: what settings forbid is named by the target's ids."""
    state = sampler(
        banned_token_ids=frozenset({1, 11}), constraint=Stripes(), allowed_token_ids=frozenset({2})
    )

    assert [2] == possible(state, row=ROW[:4])


@pytest.mark.parametrize("config", [GREEDY, SAMPLED])
def test_no_end_comes_before_the_least_number_of_tokens(config) -> None:
    """B19: the ends are masked by each row's own position, and not one row longer."""
    state = sampler(min_new_tokens=3, ends=(11, END), config=config)

    ends = [
        {11, END}
        & {t for t in range(SIZE) if state.distribution(ROW, History((), (0,) * n)).probability(t)}
        for n in range(5)
    ]

    assert [False, False, False, True, True] == [bool(each) for each in ends]


def test_constraint_masks_each_row_at_its_own_history() -> None:
    state = sampler(constraint=Outputs(((1, 2, 3), (1, 4)), END), ends=(END,))

    assert [1] == possible(state)
    assert [2, 4] == possible(state, 1)
    assert [END] == possible(state, 1, 4)


def test_mask_is_read_bit_by_bit_and_ends_where_it_ends() -> None:
    """Bit `id % 8` of byte `id // 8`; ids beyond the mask may not follow."""
    masked = Outputs(((0,), (3,), (8,), (9,)), 99)

    assert [0, 3, 8, 9] == possible(sampler(constraint=masked))


def test_committed_tokens_are_walked_once() -> None:
    """A row after what was committed walks no further than its own drafts."""
    watched = Watched(Stripes())
    state = sampler(constraint=watched)
    for token in (2, 3):
        state = state.advance(OneHot(token), token)

    state.distribution(ROW, History((), (2, 3)))
    state.distribution(ROW, History((), (2, 3, 6)))

    assert [(2, 3), (2, 3, 6)] == watched.log.masks


def test_end_token_is_no_part_of_what_a_constraint_describes() -> None:
    """B31: a committed end is not fed to the grammar, nor is one that a draft assumes."""
    watched = Watched(Outputs(((1,),), END))
    state = sampler(constraint=watched, ends=(END,))
    state = state.advance(OneHot(1), 1)
    assert state.grammar_is_complete()

    after = state.advance(OneHot(END), END)
    after.distribution(ROW, History((), (1, END)))
    state.distribution(ROW, History((), (1, END)))

    assert [(1,), (1,)] == watched.log.masks


def test_grammar_is_complete_where_only_the_end_may_follow() -> None:
    state = sampler(constraint=Outputs(((1, 2), (1, 2, 3), (4,)), END), ends=(END,))

    complete = [state.prefix_is_complete(output) for output in ((), (1,), (1, 2), (1, 2, 3), (4,))]

    assert [False, False, False, True, True] == complete
    assert not state.grammar_is_complete()
    assert state.advance(OneHot(4), 4).grammar_is_complete()
    assert state.advance(OneHot(1), 1).prefix_is_complete((1, 2, 3))


def test_illegal_output_completes_nothing() -> None:
    """B31: a draft that left the grammar is in a dead end, and that is no error."""
    state = sampler(constraint=Outputs(((1,),), END), ends=(END,))

    assert not state.prefix_is_complete((5,))
    assert not state.may_follow((5,), 1)


def test_without_a_constraint_nothing_is_complete() -> None:
    assert not sampler().grammar_is_complete()
    assert not sampler().prefix_is_complete((1, 2))


IDS = st.integers(0, SIZE - 1)
SAMPLERS = st.builds(
    sampler,
    constraint=st.sampled_from([None, Stripes()]),
    ends=st.just((2, 3)),
    allowed_token_ids=st.one_of(st.none(), st.frozensets(IDS, min_size=1)),
    banned_token_ids=st.frozensets(IDS, max_size=4),
    min_new_tokens=st.integers(0, 4),
    vocabulary=st.integers(1, SIZE),
)


@given(state=SAMPLERS, generated=st.lists(IDS, max_size=4).map(tuple), committed=st.integers(0, 4))
def test_tokens_that_may_follow_are_those_with_probability(state, generated, committed) -> None:
    """And where none may, the row is an error."""
    for token in generated[:committed]:
        state = state.advance(OneHot(token), token)
    expected = [token for token in range(SIZE) if state.may_follow(generated, token)]

    if expected:
        assert expected == possible(state, *generated)
    else:
        with pytest.raises(NothingAllowed, match=f"position {len(generated)}"):
            possible(state, *generated)


DEAD = Stripes(is_dead=True)
EVEN = Stripes()
ODD_IDS = frozenset(range(1, SIZE, 2))
NOTHING_LEFT = {
    "a dead end alone": (
        {"constraint": DEAD, "banned_token_ids": frozenset({1}), "min_new_tokens": 9},
        ("chat.tools",),
    ),
    "constraint and allowed ids": (
        {"constraint": EVEN, "allowed_token_ids": ODD_IDS, "banned_token_ids": frozenset({4})},
        ("chat.tools", "settings.allowed_token_ids"),
    ),
    "constraint and banned ids": (
        {"constraint": EVEN, "banned_token_ids": frozenset(range(0, SIZE, 2))},
        ("chat.tools", "settings.banned_token_ids"),
    ),
    "a dead end rather than settings": (
        {"constraint": DEAD, "allowed_token_ids": frozenset({END}), "min_new_tokens": 9},
        ("chat.tools",),
    ),
    "an end that comes too early": (
        {"allowed_token_ids": frozenset({END}), "min_new_tokens": 9},
        ("settings.allowed_token_ids", "settings.min_new_tokens"),
    ),
    "all of them together": (
        {
            "constraint": EVEN,
            "allowed_token_ids": frozenset({2, 3, END}),
            "banned_token_ids": frozenset({2}),
            "min_new_tokens": 9,
        },
        (
            "chat.tools",
            "settings.allowed_token_ids",
            "settings.banned_token_ids",
            "settings.min_new_tokens",
        ),
    ),
}


@pytest.mark.parametrize("config", [GREEDY, SAMPLED])
@pytest.mark.parametrize(("settings", "fields"), NOTHING_LEFT.values(), ids=NOTHING_LEFT.keys())
def test_row_with_nothing_left_names_what_forbids_it(config, settings, fields) -> None:
    """B29: only settings without which something would be left."""
    state = sampler(config=config, ends=(END,), **settings)

    with pytest.raises(NothingAllowed) as refusal:
        state.distribution(ROW, EMPTY)

    assert (0, fields) == (refusal.value.position, refusal.value.fields)


@pytest.mark.parametrize("settings", [{}, {"banned_token_ids": frozenset({1})}])
@pytest.mark.parametrize("value", [-np.inf, np.nan, np.inf])
def test_broken_row_is_the_engines_error(settings, value) -> None:
    """Not the request's, whatever it forbids."""
    with pytest.raises(InvalidLogits):
        sampler(**settings).distribution(np.full(SIZE, value, np.float32), EMPTY)


def test_prefetch_goes_as_far_as_a_block_can_be_accepted() -> None:
    watched = Watched(Outputs(((1, 2, 3), (4,)), END))
    state = sampler(constraint=watched, ends=(END,)).advance(OneHot(1), 1)

    state.prefetch((1,), (2, 5, 3))

    assert [(1,), (1, 2)] == watched.log.prefetches


def test_prefetch_ends_with_the_output() -> None:
    watched = Watched(Outputs(((1,),), END))

    sampler(constraint=watched, ends=(END,)).prefetch((), (1, END, 4))

    assert [(), (1,)] == watched.log.prefetches


def test_bias_never_brings_back_what_is_forbidden() -> None:
    state = sampler(logit_bias={3: 1e30}, banned_token_ids=frozenset({3}), config=GREEDY)

    assert OneHot(11) == state.distribution(ROW, EMPTY)
