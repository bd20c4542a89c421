"""Laws are pure, sensitive where they should be, and readable where they can be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.scripted.law import (
    VERSE,
    EchoLaw,
    HashLaw,
    MixedLaw,
    ScriptLaw,
    continuation,
    most_likely,
)
from engines.scripted.vocabulary import Special, decode, encode

END = frozenset({int(Special.EOS)})
histories = st.lists(st.integers(0, 260), min_size=1, max_size=30).map(tuple)
LAWS = (
    HashLaw(),
    HashLaw(end_one_in=3),
    MixedLaw(HashLaw(), HashLaw(key=b"x")),
    ScriptLaw((((1,), (2, 3)),)),
    EchoLaw(),
)


def chat(*turns: str):
    """Return a chat whose last turn is to be answered."""
    tokens = [Special.BOS]
    for place, turn in enumerate(turns):
        tokens += [Special.REPLY if place % 2 else Special.USER, *encode(turn)]
    return (*map(int, tokens), int(Special.REPLY))


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
@given(history=histories)
def test_logits_are_few_ordered_and_repeatable(law, history) -> None:
    logits = law.logits(history)

    ids = [token for token, _ in logits]
    assert logits == law.logits(list(history))
    assert 1 <= len(ids) <= 6
    assert sorted(set(ids)) == ids
    assert all(0 <= token <= 260 for token in ids)


@given(history=histories, place=st.integers(0, 29), change=st.integers(1, 260))
def test_hash_law_sees_every_token_of_the_history(history, place, change) -> None:
    """A history that differs anywhere, or by one token's absence, has another row."""
    place %= len(history)
    other = [*history]
    other[place] = (other[place] + change) % 261
    law = HashLaw()

    assert law.logits(history) != law.logits(other)
    assert law.logits(history) != law.logits(history[:place] + history[place + 1 :])


def test_hash_law_ends_as_often_as_it_says() -> None:
    law = HashLaw(end_one_in=4)

    ends = sum(most_likely(law.logits((token,))) == Special.EOS for token in range(1000))

    assert 200 < ends < 300


@pytest.mark.parametrize("settings", [{"alphabet": ()}, {"candidates": 0}, {"candidates": 99}])
def test_hash_law_without_room_for_candidates_is_refused(settings) -> None:
    with pytest.raises(ValueError):
        HashLaw(**settings)


def test_most_likely_of_a_tie_is_the_lowest() -> None:
    assert 3 == most_likely(((3, 1.0), (5, 1.0), (9, 0.5)))


def test_mixed_law_takes_the_larger_logit() -> None:
    left, right = HashLaw((1,), candidates=1), HashLaw((1,), candidates=1, key=b"x")
    (one,), (other,) = left.logits((9,)), right.logits((9,))

    assert (max(one, other),) == MixedLaw(left, right).logits((9,))


def test_script_gives_its_output_and_ends() -> None:
    law = ScriptLaw(((encode("hi"), encode("there")),))

    assert "there" == decode(continuation(law, encode("hi"), 99, END))


def test_script_that_is_left_gives_the_other_law() -> None:
    """Behind a wrong proposal, and behind its end, the script has no say."""
    other = HashLaw()
    law = ScriptLaw((((1, 2), (3, 4)),), other)

    for history in ((1, 2, 9), (1,), (1, 2, 3, 4, Special.EOS)):
        assert other.logits(history) == law.logits(history)


def test_echo_repeats_the_question_and_recites() -> None:
    reply = continuation(EchoLaw(), chat("How are you?"), 999, END)

    assert f"You wrote: How are you?\n{VERSE}" == decode(reply)
    assert Special.EOS == reply[-1]


def test_echo_answers_the_last_turn() -> None:
    reply = continuation(EchoLaw(), chat("one", "first", "two"), 14, END)

    assert "You wrote: two" == decode(reply)


def test_echo_without_turns_goes_on_with_the_verse() -> None:
    prompt = "Two small birds sat"

    reply = decode(continuation(EchoLaw(), encode(prompt), 999, END))

    assert VERSE.endswith(prompt + reply)


def test_echo_that_strayed_finds_its_way_back() -> None:
    """After a sampled rival the text goes on from its last known words."""
    astray = (*encode("One small birX sat on the old sto"),)

    assert "ne wall" == decode(continuation(EchoLaw(), astray, 7, END))
