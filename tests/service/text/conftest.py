"""A byte-level BPE tokenizer written by hand, and vocabularies made of pieces of a text."""

import json
from collections.abc import Callable, Sequence

import pytest

from service.runtime.request import Stop
from service.text.state import GeneratedText, TextRules
from service.text.stops import compile_stops
from service.text.tokenizer import Tokenizer, parse_tokenizer
from service.text.vocabulary import Vocabulary

PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
SYMBOLS = {byte: chr(byte) for byte in PRINTABLE} | {
    byte: chr(0x100 + place)
    for place, byte in enumerate(b for b in range(0x100) if b not in PRINTABLE)
}
SPECIAL = ("<|start|>", "<|end|>")
ADDED = "<think>"
MERGES = (("h", "i"), ("Ġ", "hi"), ("ð", "Ł"))


def _added(token: int, content: str, *, special: bool) -> dict[str, object]:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"id": token, "content": content, "special": special, **flags}


def tokenizer_document(*, missing: bytes = b"", leading: str | None = None) -> str:
    """Write a `tokenizer.json`: specials, bytes, merges, then one added ordinary token."""
    byte_tokens = [SYMBOLS[byte] for byte in range(0x100) if byte not in missing]
    entries = [*SPECIAL, *byte_tokens, *("".join(merge) for merge in MERGES)]
    added = [_added(token, content, special=True) for token, content in enumerate(SPECIAL)]
    added.append(_added(len(entries), ADDED, special=False))
    template = leading and {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": leading, "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
        ],
        "pair": [],
        "special_tokens": {
            leading: {"id": leading, "ids": [entries.index(leading)], "tokens": [leading]}
        },
    }
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    return json.dumps(
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": added,
            "normalizer": None,
            "pre_tokenizer": {**byte_level, "use_regex": True},
            "post_processor": template,
            "decoder": {**byte_level, "use_regex": True},
            "model": {
                "type": "BPE",
                "dropout": None,
                "unk_token": None,
                "continuing_subword_prefix": None,
                "end_of_word_suffix": None,
                "fuse_unk": False,
                "byte_fallback": False,
                "ignore_merges": False,
                "vocab": {entry: token for token, entry in enumerate(entries)},
                "merges": [list(merge) for merge in MERGES],
            },
        }
    )


def generated_text(
    pieces: Sequence[bytes],
    *stops: Stop,
    special: frozenset[int] = frozenset(),
    include_stop: bool = False,
    silent: frozenset[int] = frozenset(),
) -> GeneratedText:
    """Return the state of an output whose token `i` adds `pieces[i]`."""
    vocabulary = Vocabulary(tuple(pieces), special)
    compiled = compile_stops(stops, vocabulary)
    return GeneratedText(TextRules(vocabulary, compiled, include_stop, silent))


@pytest.fixture(scope="session")
def document() -> Callable[..., str]:
    return tokenizer_document


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return parse_tokenizer(tokenizer_document(), "tokenizer.json")


@pytest.fixture(scope="session")
def output() -> Callable[..., GeneratedText]:
    return generated_text
