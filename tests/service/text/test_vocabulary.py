from service.errors import FieldViolation
from service.text.vocabulary import Vocabulary, byte_symbols, spelled_bytes


def test_byte_symbols_cover_every_byte_once():
    assert list(range(256)) == sorted(byte_symbols().values())


def test_spelled_bytes_of_symbols_are_the_bytes_behind_them():
    assert b" hi\n" == spelled_bytes("ĠhiĊ")


def test_spelled_bytes_of_other_characters_are_their_own_text():
    """A space is no symbol, so the whole entry is text, é included."""
    assert "é x".encode() == spelled_bytes("é x")


def test_text_bytes_of_a_special_token_are_none():
    vocabulary = Vocabulary((b"<s>", b"a"), special=frozenset({0}))

    assert [b"", b"a"] == [vocabulary.text_bytes(0), vocabulary.text_bytes(1)]


def test_special_id_finds_only_special_tokens():
    vocabulary = Vocabulary((b"<s>", b"a"), special=frozenset({0}))

    assert (0, None) == (vocabulary.special_id("<s>"), vocabulary.special_id("a"))


def test_violations_name_field_and_position():
    """B30: an id beyond the vocabulary is refused by its place."""
    found = Vocabulary((b"a", b"b")).violations([0, 2, 1, -1], "prompt.token_ids.ids")

    assert (
        FieldViolation("prompt.token_ids.ids[1]", "2 is not a token id: ids go from 0 to 1"),
        FieldViolation("prompt.token_ids.ids[3]", "-1 is not a token id: ids go from 0 to 1"),
    ) == found


def test_violations_of_many_ids_stay_bounded():
    assert 16 == len(Vocabulary((b"a",)).violations([7] * 1000, "ids"))
