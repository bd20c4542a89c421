import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.text.utf8 import decode_complete, decode_end


@given(pieces=st.lists(st.binary(max_size=6), max_size=8))
def test_pieces_decode_as_the_whole(pieces):
    """Any bytes, cut anywhere, give the same replacements as all at once."""
    text, unfinished = "", b""
    for piece in pieces:
        more, unfinished = decode_complete(unfinished + piece)
        text += more

    assert b"".join(pieces).decode("utf-8", "replace") == text + decode_end(unfinished)


@given(data=st.binary(max_size=40))
def test_unfinished_part_is_at_most_three_bytes(data):
    assert 3 >= len(decode_complete(data)[1])


@pytest.mark.parametrize("character", ["é", "日", "👩"])
def test_character_is_held_until_its_last_byte(character):
    data = character.encode()

    assert ("", data[:-1]) == decode_complete(data[:-1])
    assert (character, b"") == decode_complete(data)


@pytest.mark.parametrize("data", [b"\xff", b"\xc0", b"\x80", b"\xf5"])
def test_byte_that_begins_nothing_is_replaced_at_once(data):
    assert ("\N{REPLACEMENT CHARACTER}", b"") == decode_complete(data)


def test_end_replaces_an_unfinished_character_once():
    assert "\N{REPLACEMENT CHARACTER}" == decode_end("👩".encode()[:3])


def test_end_of_nothing_is_nothing():
    assert "" == decode_end(b"")
