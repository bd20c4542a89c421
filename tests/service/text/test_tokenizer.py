import json
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import BundleError, FieldViolation, InvalidRequest
from service.text.tokenizer import load_tokenizer, parse_tokenizer


@given(text=st.text(max_size=40))
def test_decode_returns_the_text_that_was_encoded(tokenizer, text):
    """Every text has its bytes: emoji, controls and combining characters too."""
    assert text == tokenizer.decode(tokenizer.encode_text(text))


@given(ids=st.lists(st.integers(0, 261), max_size=12))
def test_decode_of_any_tokens_is_the_library_s(tokenizer, ids):
    """An independent decoder agrees on arbitrary sequences, broken characters included."""
    library = tokenizer._markup

    assert library.decode(ids, skip_special_tokens=True) == tokenizer.decode(ids)


def test_encode_text_spells_out_the_name_of_a_special_token(tokenizer):
    ids = tokenizer.encode_text("<|end|>")

    assert len("<|end|>") == len(ids)
    assert "<|end|>" == tokenizer.decode(ids)


def test_encode_markup_reads_the_name_of_a_special_token(tokenizer):
    assert (1, *tokenizer.encode_text("hi"), 0) == tokenizer.encode_markup("<|end|>hi<|start|>")


def test_encode_text_adds_the_leading_token_that_a_model_wants(document):
    tokenizer = parse_tokenizer(document(leading="<|start|>"), "tokenizer.json")
    hi = tokenizer.encode_markup("hi")

    assert (0, *hi) == tokenizer.encode_text("hi")
    assert hi == tokenizer.encode_text("hi", add_special=False)


def test_encode_markup_leaves_the_leading_token_to_the_template(document):
    tokenizer = parse_tokenizer(document(leading="<|start|>"), "tokenizer.json")

    assert 1 == tokenizer.encode_markup("<|start|>hi").count(0)


@pytest.mark.parametrize("encode", ["encode_text", "encode_markup"])
def test_encode_refuses_a_lone_surrogate_by_its_place(tokenizer, encode):
    with pytest.raises(InvalidRequest) as refused:
        getattr(tokenizer, encode)("ab\ud800", field="prompt")

    assert (FieldViolation("prompt", "character 2 is a lone surrogate"),) == (
        refused.value.violations
    )


def test_encode_lets_other_threads_run(tokenizer):
    """With no forced switches, another thread runs only where the interpreter's lock is released.

    The main thread would otherwise hold it from `start` to the end of the call.
    """
    text, start, ran = "hi hello " * 30_000, threading.Lock(), threading.Event()
    start.acquire()

    def run():
        with start:
            ran.set()

    thread = threading.Thread(target=run)
    thread.start()
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1000.0)
    try:
        start.release()
        tokenizer.encode_markup(text)
        seen = ran.is_set()
    finally:
        sys.setswitchinterval(usual)
    thread.join()
    assert seen


def test_decode_leaves_special_tokens_out_unless_asked(tokenizer):
    ids = tokenizer.encode_markup("<|start|>hi<think><|end|>")

    assert "hi<think>" == tokenizer.decode(ids)
    assert "<|start|>hi<think><|end|>" == tokenizer.decode(ids, skip_special=False)


def test_decode_refuses_ids_beyond_the_vocabulary(tokenizer):
    size = tokenizer.vocabulary.size
    with pytest.raises(InvalidRequest) as refused:
        tokenizer.decode([0, size])

    assert ["token_ids[1]"] == [violation.field for violation in refused.value.violations]


def test_decode_replaces_bytes_that_are_no_character(tokenizer):
    broken = tokenizer.encode_text("é")[:1]

    assert "\N{REPLACEMENT CHARACTER}" == tokenizer.decode(broken)


def test_vocabulary_flags_special_tokens_only(tokenizer):
    vocabulary = tokenizer.vocabulary

    assert frozenset({0, 1}) == vocabulary.special
    assert b"<think>" == vocabulary.tokens[vocabulary.size - 1]
    assert b" hi" in vocabulary.tokens


def test_lost_characters_names_what_encoding_would_drop(document):
    """U+0004 leaves no token, and U+50000 loses its first byte."""
    tokenizer = parse_tokenizer(document(missing=b"\x04\xf1"), "tokenizer.json")
    text = "a\x04b\U00050000\x04"

    assert "\x04\U00050000" == tokenizer.lost_characters(text)
    assert text != tokenizer.decode(tokenizer.encode_text(text))


def test_lost_characters_of_a_whole_vocabulary_are_none(tokenizer):
    assert "" == tokenizer.lost_characters("".join(map(chr, range(0x300))))


@given(text=st.text(max_size=60))
def test_least_tokens_never_exceeds_the_encoding(tokenizer, text):
    assert tokenizer.least_tokens(text) <= len(tokenizer.encode_text(text))


def test_least_tokens_grows_with_the_text(tokenizer):
    assert 1000 == tokenizer.least_tokens("x" * 1000 * len("<|start|>"))


@pytest.mark.parametrize(
    "left_over",
    [
        {
            "truncation": {
                "direction": "Right",
                "max_length": 2,
                "strategy": "LongestFirst",
                "stride": 0,
            }
        },
        {
            "padding": {
                "strategy": {"Fixed": 9},
                "direction": "Right",
                "pad_to_multiple_of": None,
                "pad_id": 0,
                "pad_type_id": 0,
                "pad_token": "<|start|>",
            }
        },
    ],
)
def test_parse_ignores_truncation_and_padding(document, left_over):
    """A prompt is neither cut nor filled by a setting left over from training."""
    described = json.loads(document()) | left_over
    tokenizer = parse_tokenizer(json.dumps(described), "tokenizer.json")

    assert 5 == len(tokenizer.encode_text("a b c"))


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"decoder": 3}', '{"decoder": {"type": "ByteLevel"}}'],
)
def test_parse_refuses_what_is_no_tokenizer(text):
    with pytest.raises(BundleError, match=r"broken\.json: is not a tokenizer"):
        parse_tokenizer(text, "broken.json")


@pytest.mark.parametrize(
    "decoder",
    [None, {"type": "WordPiece"}, {"type": "Sequence", "decoders": [{"type": "ByteFallback"}]}],
)
def test_parse_refuses_a_decoder_by_other_rules(document, decoder):
    described = json.loads(document()) | {"decoder": decoder}

    with pytest.raises(BundleError) as refused:
        parse_tokenizer(json.dumps(described), "tokenizer.json")

    assert "decoder" == refused.value.field


def test_parse_accepts_a_sequence_that_only_fuses(document):
    described = json.loads(document())
    sequence = {"type": "Sequence", "decoders": [described["decoder"], {"type": "Fuse"}]}
    tokenizer = parse_tokenizer(json.dumps(described | {"decoder": sequence}), "tokenizer.json")

    assert "hi" == tokenizer.decode(tokenizer.encode_text("hi"))


def test_load_reads_a_file(document, tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(document(), encoding="utf-8")

    assert "hi" == load_tokenizer(path).decode(load_tokenizer(path).encode_text("hi"))


def test_load_names_a_missing_file(tmp_path):
    with pytest.raises(BundleError, match="cannot be read") as refused:
        load_tokenizer(tmp_path / "tokenizer.json")

    assert str(tmp_path / "tokenizer.json") == refused.value.path
