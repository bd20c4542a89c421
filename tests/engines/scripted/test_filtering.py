"""Which tokens may come: settings and constraint, at every row's own position."""

import pytest

from engines.scripted.floor import FLOOR
from service.errors import NothingAllowed
from service.speculation.contract import History
from tests.engines.scripted.rows import END, NOTHING, kept, only, row, sampler, shares
from tests.neutral import GREEDY


def refusal(history: History = NOTHING, **settings) -> NothingAllowed:
    with pytest.raises(NothingAllowed) as caught:
        sampler(**settings).process(((1, 0.0),), history)
    return caught.value


def test_banned_and_not_allowed_tokens_cannot_come() -> None:
    assert {4, 6, 9} == kept(banned_token_ids=frozenset({1, 300}))
    assert {4, 6} == kept(allowed_token_ids=frozenset({4, 6}))
    assert {4} == kept(allowed_token_ids=frozenset({4, 6}), banned_token_ids=frozenset({6}))


def test_what_is_left_is_scaled_to_one() -> None:
    assert shares({4: 2, 6: 1}) == pytest.approx(row(sampler(allowed_token_ids=frozenset({4, 6}))))


def test_padding_is_never_chosen() -> None:
    """B10: ids from the vocabulary's size on are no tokens, whatever their logits."""
    assert {1, 4} == kept(size=6)
    assert {0} == kept(size=1, config=GREEDY)


@pytest.mark.parametrize(("said", "may_end"), [(0, False), (2, False), (3, True), (4, True)])
def test_end_cannot_come_before_the_least_tokens(said, may_end) -> None:
    """B19: the count is of the row's own history, wherever in a block the row stands."""
    logits = ((1, 0.0), (END, 5.0))
    history = History((9,) * 7, (1,) * said)

    left = kept(history, logits, config=GREEDY, min_new_tokens=3, ends={END})

    assert ({END} if may_end else {1}) == left


def test_least_tokens_without_ends_forbid_nothing() -> None:
    assert {1, 4, 6, 9} == kept(min_new_tokens=3)


def test_constraint_is_walked_along_the_history() -> None:
    """The law lists none of these tokens: they have the floor, and the lowest is likeliest."""
    constraint = only((70, 80, 90), (70, 81), (71,))
    greedy = sampler(config=GREEDY, constraint=constraint, ends={END})

    assert {70: 1.0} == row(greedy)
    assert {80: 1.0} == row(greedy, History((1, 2), (70,)))
    assert {90: 1.0} == row(greedy, History((1, 2), (70, 80)))
    assert {END: 1.0} == row(greedy, History((1, 2), (70, 81)))


def test_listed_token_of_a_mask_is_likelier_than_the_floor() -> None:
    constraint = only((3,), (6,), (4,))

    assert shares({4: 2, 6: 1}) == pytest.approx(row(sampler(constraint=constraint)))


def test_mask_says_which_bit_of_which_byte() -> None:
    for token in (0, 7, 8, 15, 16, 255):
        assert {token} == kept(constraint=only((token,)))


def test_walk_begins_where_the_state_stands() -> None:
    """Committed tokens moved the state already, and are not walked again."""
    fresh = sampler(config=GREEDY, constraint=only((70, 80, 90)), ends={END})
    processed = fresh.process(((1, 0.0),), NOTHING)

    moved = fresh.advance(processed, 70)

    for state in (fresh, moved):
        assert {80: 1.0} == row(state, History((), (70,)))
        assert {90: 1.0} == row(state, History((), (70, 80)))
    assert only((70, 80, 90)) == fresh.request.constraint


def test_committed_end_does_not_move_the_constraint() -> None:
    state = sampler(constraint=only((70,)), ends={END})
    for token in (70, END):
        state = state.advance(
            state.process(((1, 0.0),), History((), (70,) * state.committed)), token
        )

    assert only((70,)).after(70) == state.request.constraint
    assert state.grammar_is_complete()


def test_completion_is_that_of_what_was_committed_or_is_tentative() -> None:
    state = sampler(constraint=only((70, 80), (70, 80, 90), (71,)), ends={END})

    assert not state.grammar_is_complete()
    assert [False, False, True] == [
        state.prefix_is_complete(output) for output in ((70,), (70, 80), (70, 80, 90))
    ]
    assert state.prefix_is_complete((71,))
    assert not state.prefix_is_complete((80,))
    assert not sampler().prefix_is_complete((71,))


def test_state_says_what_may_follow() -> None:
    """What is merely unlikely may; what settings or constraint forbid may not."""
    free = sampler(banned_token_ids=frozenset({5}), min_new_tokens=1, ends={END})
    assert [False, True, False, True] == [
        free.may_follow((), 5),
        free.may_follow((), 200),
        free.may_follow((), END),
        free.may_follow((8,), END),
    ]
    assert not free.may_follow((), 261)
    held = sampler(constraint=only((70, 80)), ends={END})
    assert [True, False, True, False] == [
        held.may_follow((), 70),
        held.may_follow((), 80),
        held.may_follow((70,), 80),
        held.may_follow((80,), 80),
    ]


@pytest.mark.parametrize(
    ("settings", "fields"),
    [
        ({"constraint": only(field="chat.tools")}, ("chat.tools",)),
        (
            {
                "constraint": only(field="chat.tools"),
                "allowed_token_ids": frozenset({END}),
                "min_new_tokens": 2,
            },
            ("chat.tools",),
        ),
        (
            {"constraint": only((7,)), "banned_token_ids": frozenset({7, 8})},
            ("settings.constraint", "settings.banned_token_ids"),
        ),
        (
            {"constraint": only(()), "min_new_tokens": 2, "banned_token_ids": frozenset({8})},
            ("settings.constraint", "settings.min_new_tokens"),
        ),
        (
            {"allowed_token_ids": frozenset({END}), "min_new_tokens": 2},
            ("settings.allowed_token_ids", "settings.min_new_tokens"),
        ),
        (
            {"allowed_token_ids": frozenset({7}), "banned_token_ids": frozenset({7})},
            ("settings.allowed_token_ids", "settings.banned_token_ids"),
        ),
    ],
)
def test_nothing_left_names_the_settings_that_are_to_blame(settings, fields) -> None:
    """B29: the row is refused by name and position; no other field is blamed."""
    history = History((1, 2), ())

    refused = refusal(history, ends={END}, **settings)

    assert (0, fields) == (refused.position, refused.fields)


def test_nothing_left_says_at_which_position() -> None:
    assert 2 == refusal(History((9,), (70, 71)), constraint=only((70, 80))).position


def test_floor_is_below_what_laws_list() -> None:
    """Without settings that choose, unlisted tokens are impossible."""
    assert (1, 4, 6, 9) == sampler().process(
        ((1, 0.0), (4, 0.0), (6, 0.0), (9, 0.0)), NOTHING
    ).tokens
    dense = sampler(banned_token_ids=frozenset({1})).process(((4, 0.0), (6, FLOOR + 1)), NOTHING)
    assert 260 == len(dense.tokens)
    assert dense.probability(6) > dense.probability(200) > 0.0
