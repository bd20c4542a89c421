"""The index of a text against a search through all of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.proposers.prompt_lookup.index import MAX_MATCH, Guess, TextIndex

TEXTS = st.lists(st.integers(0, 2), max_size=60)
MAX_PLACES = 16


def index_of(text) -> TextIndex:
    index = TextIndex()
    index.extend(text)
    return index


def searched(text) -> Guess | None:
    """Guess by comparing the end of the text with every earlier place, longest matches first."""
    ends = range(1, len(text))
    for pair in (2, 1):
        places = [end for end in ends if text[max(0, end - pair) : end] == text[-pair:]]
        if len(text) > pair - 1 and places:
            break
    else:
        return None
    places = places[-MAX_PLACES:]
    lengths = {end: matched(text, end) if pair == 2 else 1 for end in places}
    longest = max(lengths.values())
    followers = [text[end] for end in places if lengths[end] == longest]
    best = max(followers.count(token) for token in followers)
    token = next(t for t in reversed(followers) if followers.count(t) == best)
    return Guess(token, best / (len(followers) + 3.5 / longest**1.25))


def matched(text, end: int) -> int:
    """Count how many tokens before `end` equal the last ones."""
    return max(
        length
        for length in range(1, min(end, MAX_MATCH) + 1)
        if text[end - length : end] == text[-length:]
    )


@given(TEXTS)
def test_guess_equals_a_search_of_the_whole_text(text) -> None:
    expected, actual = searched(text), index_of(text).guess()

    assert (expected is None) == (actual is None)
    if expected and actual:
        assert expected.token == actual.token
        assert expected.probability == pytest.approx(actual.probability)


@given(TEXTS, TEXTS, TEXTS)
def test_truncation_leaves_no_trace(text, assumed, other) -> None:
    """What was only assumed can be taken back, and the text goes on another way."""
    index = index_of(text)
    index.extend(assumed)

    index.truncate(len(text))
    index.extend(other)

    assert len(text) + len(other) == len(index)
    assert index_of(text + other).guess() == index.guess()


@given(TEXTS, st.integers(0, 60))
def test_index_grows_by_parts_as_it_does_at_once(text, cut) -> None:
    index = index_of(text[:cut])
    index.extend(text[cut:])

    assert index_of(text).guess() == index.guess()


@pytest.mark.parametrize("text", [[], [1], [1, 2], [1, 2, 3]])
def test_text_without_repetition_gives_no_guess(text) -> None:
    """B11: too short a text, or one that never repeats."""
    assert index_of(text).guess() is None


def test_match_is_never_the_end_itself() -> None:
    """B11: a text of one repeated token matches one place earlier, and goes on."""
    assert 1 == index_of([1] * 6).guess().token


def test_longest_match_decides() -> None:
    """After 1 2 3 came 9, though after 2 3 alone 8 came more often and later."""
    text = [1, 2, 3, 9, 0, 2, 3, 8, 5, 2, 3, 8, 6, 1, 2, 3]

    assert 9 == index_of(text).guess().token


def test_most_frequent_follower_decides_and_the_latest_among_equals() -> None:
    assert 7 == index_of([1, 7, 2, 1, 7, 3, 1, 8, 4, 1]).guess().token
    assert 8 == index_of([1, 7, 2, 1, 8, 4, 1]).guess().token


def test_probability_grows_with_the_match_and_with_agreement() -> None:
    short = index_of([1, 7, 2, 1]).guess()
    longer = index_of([5, 1, 7, 2, 5, 1]).guess()
    agreed = index_of([5, 1, 7, 2, 5, 1, 7, 3, 5, 1]).guess()
    divided = index_of([5, 1, 7, 2, 5, 1, 8, 3, 5, 1]).guess()

    assert short.probability < longer.probability < agreed.probability < 1.0
    assert divided.probability < longer.probability


def test_guess_looks_at_a_bounded_number_of_places() -> None:
    """Of a thousand places only the latest count."""
    text = [1, 2, 7] * 1000 + [1, 2, 8] * MAX_PLACES + [1, 2]

    assert 8 == index_of(text).guess().token
