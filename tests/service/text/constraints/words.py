"""Two tokenizers: one of bytes, and one whose tokens overlap, begin inside characters or repeat."""

import json

import pytest

from engines.scripted.vocabulary import Special, tokenizer_json
from service.errors import InvalidRequest
from service.text.constraints.compiler import GrammarCompiler
from service.text.language import JsonSchema
from service.text.tokenizer import parse_tokenizer
from service.text.vocabulary import byte_symbols

END = int(Special.EOS)
REPLY = int(Special.REPLY)
ENDS = frozenset({END})
FIELD = "settings.constraint"

PIECES = ("ab", "abc", "bc", "aa", '{"', '":', '"}', '": ', "12", "}\n", "  ", "€", "hello", "ye")
BROKEN = (b"\xe2\x82", b"\x82\xac")


def spelled(piece: bytes) -> str:
    """Write a token as a byte-level vocabulary does."""
    symbols = {byte: symbol for symbol, byte in byte_symbols().items()}
    return "".join(symbols[byte] for byte in piece)


def pieces_document() -> str:
    """Return the scripted vocabulary with pieces of several bytes after it."""
    document = json.loads(tokenizer_json())
    entries = document["model"]["vocab"]
    for piece in (*map(str.encode, PIECES), *BROKEN):
        entries[spelled(piece)] = len(entries)
    return json.dumps(document)


BYTES = parse_tokenizer(tokenizer_json(), "bytes")
PIECED = parse_tokenizer(pieces_document(), "pieces")
COMPILERS = {"bytes": GrammarCompiler(BYTES, ENDS), "pieces": GrammarCompiler(PIECED, ENDS)}


def permitted(state) -> set[int]:
    """Return the ids in a mask."""
    mask = state.mask()
    return {token for token in range(len(mask) * 8) if mask[token // 8] >> token % 8 & 1}


def written(state, text: str | bytes):
    """Follow a text byte by byte."""
    for byte in text.encode() if isinstance(text, str) else text:
        state = state.after(byte)
    return state


def accepts(state, text: str) -> bool:
    """Whether the output may end after a text."""
    return END in permitted(written(state, text))


def spell(tokens) -> bytes:
    """Return what tokens of the larger vocabulary spell; the smaller one is its beginning."""
    return b"".join(PIECED.vocabulary.tokens[token] for token in tokens)


def begin(language, ends=ENDS, compiler=COMPILERS["bytes"]):
    return compiler.compile(language, ends, FIELD)


def refusals(language, compiler=COMPILERS["bytes"]):
    with pytest.raises(InvalidRequest) as refused:
        compiler.compile(language, ENDS, FIELD)
    return refused.value.violations


def schema(**keywords) -> JsonSchema:
    return JsonSchema(json.dumps(keywords))
