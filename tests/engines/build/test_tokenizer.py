"""Tokenizers from GGUF metadata."""

import pytest
from tokenizers import Tokenizer

from engines.build.gguf_source import GgufModel
from engines.build.tokenizer import tokenizer_from_gguf
from engines.bundle.manifest import SpecialTokens
from service.errors import BundleError
from tests.engines.build.tiny_gguf import write_tiny_gguf

TEXTS = ["the hat in the rain", "  two  spaces", "naïve café 東京 🎉", "1234", "\ttab\r\n", ""]


@pytest.fixture
def built(tmp_path):
    return tokenizer_from_gguf(GgufModel(write_tiny_gguf(tmp_path / "m.gguf")))


@pytest.mark.parametrize("text", TEXTS)
def test_text_survives_the_round_trip(built, text) -> None:
    ids = built.tokenizer.encode(text, add_special_tokens=False).ids

    assert text == built.tokenizer.decode(ids, skip_special_tokens=False)


def test_merges_apply_in_their_order(built) -> None:
    assert ["Ġthe", "Ġ", "r", "a", "in"] == built.tokenizer.encode(" the rain").tokens


def test_digits_stand_alone(built) -> None:
    assert ["1", "2", "3"] == built.tokenizer.encode("123").tokens


def test_special_tokens_are_one_token_and_known(built) -> None:
    ids = built.tokenizer.encode("<|im_start|>a<|im_end|>", add_special_tokens=False).ids

    assert (1, 2) == (ids[0], ids[-1])
    expected = SpecialTokens(bos=1, eos=(2,), pad=None, unknown=None, add_bos=False)
    assert expected == built.tokens


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("tokenizer.ggml.model", "llama", "SentencePiece"),
        ("tokenizer.ggml.model", "bert", "'bert'"),
        ("tokenizer.ggml.pre", "qwen2", "'qwen2'"),
        ("tokenizer.ggml.pre", None, "missing"),
        ("tokenizer.ggml.token_type", [1, 3], "2 entries"),
        ("tokenizer.ggml.eos_token_id", 4096, "4096"),
    ],
)
def test_tokenizer_that_is_not_reproduced_is_refused(tmp_path, key, value, message) -> None:
    model = GgufModel(write_tiny_gguf(tmp_path / "m.gguf", **{key: value}))

    with pytest.raises(BundleError, match=message) as caught:
        tokenizer_from_gguf(model)

    assert key == caught.value.field


def test_vocabulary_beyond_the_embedding_is_refused(tmp_path) -> None:
    changes = {"tokenizer.ggml.tokens": ["a"] * 999, "tokenizer.ggml.token_type": [1] * 999}
    model = GgufModel(write_tiny_gguf(tmp_path / "m.gguf", **changes))

    with pytest.raises(BundleError, match="999 entries, the embedding has") as caught:
        tokenizer_from_gguf(model)

    assert "tokenizer.ggml.tokens" == caught.value.field


def test_tokenizer_with_two_ends_knows_both(tmp_path) -> None:
    path = write_tiny_gguf(tmp_path / "m.gguf", **{"tokenizer.ggml.eot_token_id": 0})

    assert (2, 0) == tokenizer_from_gguf(GgufModel(path)).tokens.eos


def test_padding_of_the_embedding_is_no_part_of_the_vocabulary(tmp_path) -> None:
    """B10: models of one family differ in padding alone, and their drafts still fit."""
    merges = ["Ġ t", "h e", "Ġt he", "i n"]
    path = write_tiny_gguf(tmp_path / "whole.gguf")
    tokens = GgufModel(path).metadata.strings("tokenizer.ggml.tokens")[:-2]
    kinds = [3, 3, 3, *[1] * (len(tokens) - 3)]
    short, padded = (
        tokenizer_from_gguf(
            GgufModel(
                write_tiny_gguf(
                    tmp_path / f"{len(padding)}.gguf",
                    **{
                        "tokenizer.ggml.tokens": [*tokens, *padding],
                        "tokenizer.ggml.token_type": [*kinds, *[5] * len(padding)],
                        "tokenizer.ggml.merges": merges,
                    },
                )
            )
        )
        for padding in ([], ["[PAD263]", "[PAD264]"])
    )

    assert short.fingerprint == padded.fingerprint
    assert len(tokens) == padded.tokenizer.get_vocab_size()


@pytest.mark.model
def test_default_tokenizer_round_trips_and_marks_turns(default_bundle) -> None:
    tokenizer = Tokenizer.from_file(str(default_bundle.tokenizer_path))

    for text in TEXTS:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert text == tokenizer.decode(ids, skip_special_tokens=False)
    turn = tokenizer.encode("<|im_start|>user\nHi<|im_end|>\n", add_special_tokens=False)
    assert [1, 4093, 198, 26843, 2, 198] == turn.ids
