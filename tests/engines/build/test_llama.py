"""Llama 3 from GGUF: its computation against plain numpy, its tokens against Hugging Face's."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from engines.build.build import build_bundle
from engines.build.gguf_source import GgufModel
from engines.build.onnx_emitter import EmitOptions, Lowering, Weights
from engines.build.progress import SilentProgress
from engines.build.tokenizer import tokenizer_from_gguf
from engines.bundle.bundle import load_bundle
from engines.bundle.manifest import SpecialTokens
from engines.onnx.decoder import Decoder
from engines.onnx.passes import LaneInput
from service.errors import BundleError
from service.runtime.request import ChatPrompt
from service.text.chat import ChatTemplate
from service.text.conversation import ChatMessage
from service.text.tokenizer import load_tokenizer
from tests.engines.build.reference_decoder import ReferenceDecoder
from tests.engines.build.tiny_gguf import write_gguf
from tests.engines.build.tiny_llama import (
    BOS,
    END_OF_TEXT,
    EOM,
    EOT,
    GEOMETRY,
    SPECIALS,
    hugging_face_tokenizer,
    tiny_llama,
    write_tiny_llama,
)

PIECES = ["I'm", "'MA", "'S ", "the rain", " rain", "RAIN", "123456", "1", "½", " ", "  ", "\n",
          "\r\n", "\t", "?!", "…\n\n", "naïve", "東京", "🎉", "_a", "'\u017f",
          *SPECIALS]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=8).map("".join) | st.text(max_size=12)
HUGGING_FACE, HUGGING_FACE_LITERAL = hugging_face_tokenizer(), hugging_face_tokenizer()
HUGGING_FACE_LITERAL.encode_special_tokens = True


def built_decoder(path, source, options: EmitOptions) -> Decoder:
    build_bundle(source, path, options, SilentProgress())
    return Decoder(load_bundle(path), max_slots=1, max_context=GEOMETRY.context_length)


def logits(decoder: Decoder, passes: list[tuple[int, ...]]) -> np.ndarray:
    """Run passes one after the other in one lane and give the logits of all rows."""
    slot, start, rows = decoder.open(), 0, []
    for tokens in passes:
        rows.append(decoder.forward([LaneInput(slot, start, tokens, len(tokens))])[0].copy())
        start += len(tokens)
    decoder.close(slot)
    return np.concatenate(rows)


def some_tokens(count: int) -> tuple[int, ...]:
    return tuple(int(t) for t in np.random.default_rng(2).integers(0, GEOMETRY.vocabulary, count))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    path = tmp_path_factory.mktemp("llama") / "m.gguf"
    return tokenizer_from_gguf(GgufModel(write_tiny_llama(path)))


@pytest.fixture(scope="module")
def literal(built):
    """The same tokenizer, to which the name of a special token is text."""
    tokenizer = Tokenizer.from_str(built.tokenizer.to_str())
    tokenizer.encode_special_tokens = True
    return tokenizer


@pytest.mark.parametrize("lowering", Lowering)
@pytest.mark.parametrize("kv_heads", [1, 2, 8])
def test_llama_bundle_computes_the_model_in_the_file(tmp_path, kv_heads, lowering) -> None:
    """Positions go far enough for the factors, theta and the head's width to show."""
    model = tiny_llama(kv_heads)
    source, tokens = write_gguf(tmp_path / "m.gguf", model), some_tokens(120)
    decoder = built_decoder(tmp_path / "m", source, EmitOptions(Weights.F32, lowering))

    expected = ReferenceDecoder(model.description, model.weights).logits(tokens)

    assert logits(decoder, [tokens]) == pytest.approx(np.asarray(expected), abs=5e-4)


@pytest.mark.parametrize("kv_heads", [1, 2, 8])
def test_llama_rows_do_not_depend_on_their_pass(tmp_path, kv_heads) -> None:
    """However many queries share a key; with one of each, a lone row needs care."""
    source, tokens = write_gguf(tmp_path / "m.gguf", tiny_llama(kv_heads)), some_tokens(40)
    decoder = built_decoder(tmp_path / "m", source, EmitOptions())

    alone = logits(decoder, [(token,) for token in tokens])

    for width in (3, 8, 40):
        passes = [tokens[start : start + width] for start in range(0, len(tokens), width)]
        assert (alone == logits(decoder, passes)).all()


def test_llama_description_has_the_geometry_of_the_file(tmp_path) -> None:
    description = GgufModel(write_tiny_llama(tmp_path / "m.gguf")).description

    assert GEOMETRY == description.geometry
    assert ("head", "rope.factors") == (description.head, description.rope.factors)


@given(text=TEXTS)
def test_llama_tokens_are_those_of_hugging_face(built, text) -> None:
    expected = HUGGING_FACE.encode(text)

    found = built.tokenizer.encode(text)

    assert (expected.ids, expected.tokens) == (found.ids, found.tokens)
    assert HUGGING_FACE.decode(expected.ids) == built.tokenizer.decode(found.ids)


@given(text=TEXTS)
def test_llama_markup_in_plain_text_is_spelled_as_hugging_face_does(literal, text) -> None:
    """Its name alone makes no special token, though here the vocabulary itself holds it."""
    assert HUGGING_FACE_LITERAL.encode(text).ids == literal.encode(text).ids


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("12345", ["123", "4", "5"]),
        ("345", ["34", "5"]),
        (" rain", ["Ġrain"]),
        ("I'MA", ["I", "'", "M", "A"]),
        ("/MA", ["/", "MA"]),
        ("a\n\n", ["a", "ĊĊ"]),
        ("  the", ["Ġ", "Ġthe"]),
    ],
)
def test_llama_text_is_cut_by_its_expression(built, text, tokens) -> None:
    assert tokens == built.tokenizer.encode(text, add_special_tokens=False).tokens


def test_llama_ends_are_those_the_file_names_and_those_its_vocabulary_has(built) -> None:
    """Converters name one end, and the models use three."""
    expected = SpecialTokens(
        bos=BOS, eos=(EOT, END_OF_TEXT, EOM), pad=None, unknown=None, add_bos=True
    )
    assert expected == built.tokens


def test_named_ends_come_in_their_order(tmp_path) -> None:
    ends = {"tokenizer.ggml.eot_token_id": 7, "tokenizer.ggml.eom_token_id": 3}
    path = write_tiny_llama(tmp_path / "m.gguf", **ends)

    assert (EOT, 7, 3, END_OF_TEXT, EOM) == tokenizer_from_gguf(GgufModel(path)).tokens.eos


def test_leading_token_is_not_added_where_the_file_says_so(tmp_path) -> None:
    path = write_tiny_llama(tmp_path / "m.gguf", **{"tokenizer.ggml.add_bos_token": False})
    built = tokenizer_from_gguf(GgufModel(path))

    assert not built.tokens.add_bos
    assert ["in"] == built.tokenizer.encode("in").tokens


def test_leading_token_without_an_id_is_refused(tmp_path) -> None:
    model = GgufModel(
        write_tiny_llama(tmp_path / "m.gguf", **{"tokenizer.ggml.bos_token_id": None})
    )

    with pytest.raises(BundleError) as caught:
        tokenizer_from_gguf(model)

    assert "tokenizer.ggml.bos_token_id" == caught.value.field


def test_llama_bundle_renders_one_leading_token(tmp_path) -> None:
    """The template writes it; a plain text gets it only on request."""
    source = write_tiny_llama(tmp_path / "m.gguf")
    build_bundle(source, tmp_path / "m", EmitOptions(), SilentProgress())
    bundle = load_bundle(tmp_path / "m", fresh=True)
    tokenizer = load_tokenizer(bundle.tokenizer_path)
    template = ChatTemplate(bundle.chat_template(), path="", bos_token=SPECIALS[0])

    prompt = tokenizer.encode_markup(template.render(ChatPrompt((ChatMessage("user", "in"),))))

    assert (BOS, 1) == (prompt[0], prompt.count(BOS))
    assert EOT == prompt[-1]
    assert (BOS, *tokenizer.encode_text("in", add_special=False)) == tokenizer.encode_text("in")
    generation = json.loads(bundle.generation_config_path.read_text())
    assert [EOT, END_OF_TEXT, EOM] == generation["eos_token_id"]
