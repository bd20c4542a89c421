"""Text to tokens and back, over a bundle's `tokenizer.json`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tokenizers

from service.errors import BundleError, FieldViolation, InvalidRequest
from service.text.vocabulary import Vocabulary, byte_symbols, spelled_bytes

Tokens = tuple[int, ...]

_DECODERS = frozenset({"ByteLevel", "Fuse"})


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """Encodes and decodes for one model; shared by all threads, and never changed.

    Encoding is linear in the text but slow, up to a second a megabyte, and
    belongs off the event loop. Other threads run meanwhile.
    """

    vocabulary: Vocabulary
    missing_bytes: bytes
    longest_token: int
    _markup: tokenizers.Tokenizer
    _literal: tokenizers.Tokenizer

    def encode_text(self, text: str, *, add_special: bool = True, field: str = "text") -> Tokens:
        """Encode a plain text, tokenised as it stands.

        The name of a special token in it is text like any other: only a chat
        template or token ids can say `<|im_start|>` and mean it. `add_special`
        adds the tokens that the model wants around a text, such as a leading one.

        Raises:
            InvalidRequest: the text holds a lone surrogate; `field` names it.
        """
        return _encode(self._literal, text, add_special=add_special, field=field)

    def encode_markup(self, text: str, *, field: str = "chat") -> Tokens:
        """Encode a rendered chat: names of special tokens become those tokens.

        Nothing is added, because the template has already written what the model
        wants. A template does not escape messages, so they can name them too.

        Raises:
            InvalidRequest: the text holds a lone surrogate; `field` names it.
        """
        return _encode(self._markup, text, add_special=False, field=field)

    def decode(
        self, ids: Sequence[int], *, skip_special: bool = True, field: str = "token_ids"
    ) -> str:
        """Decode tokens; bytes that are no UTF-8 become U+FFFD.

        Raises:
            InvalidRequest: some ids are no tokens; it names their positions in `field`.
        """
        if violations := self.vocabulary.violations(ids, field):
            raise InvalidRequest(*violations)
        read = self.vocabulary.text_bytes if skip_special else self.vocabulary.tokens.__getitem__
        return b"".join(map(read, ids)).decode("utf-8", "replace")

    def lost_characters(self, text: str) -> str:
        """Return the distinct characters of a text that encoding drops or damages.

        A vocabulary may lack the symbols of some bytes (SmolLM2 lacks 21: control
        characters, and what starts the planes from 4 to 11). Such a byte leaves no
        token, without a word.
        """
        data = text.encode("utf-8", "replace")
        if len(data.translate(None, self.missing_bytes)) == len(data):
            return ""
        missing = frozenset(self.missing_bytes)
        return "".join(
            c for c in dict.fromkeys(text) if not missing.isdisjoint(c.encode("utf-8", "replace"))
        )

    def least_tokens(self, text: str) -> int:
        """Return a number of tokens that a text cannot fall below, without encoding it.

        It refuses a text that is far too long before time is spent on it.
        """
        kept = text.encode("utf-8", "replace").translate(None, self.missing_bytes)
        return -(-len(kept) // self.longest_token)


def load_tokenizer(path: Path) -> Tokenizer:
    """Load the `tokenizer.json` at `path`.

    Raises:
        BundleError: the file is missing, damaged, or not of a byte-level tokenizer.
    """
    try:
        document = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as unreadable:
        raise BundleError(f"cannot be read: {unreadable}", path=str(path)) from unreadable
    return parse_tokenizer(document, str(path))


def parse_tokenizer(document: str, path: str) -> Tokenizer:
    """Read the text of a `tokenizer.json`; `path` names it in errors.

    Raises:
        BundleError: it is damaged, or not of a byte-level tokenizer.
    """
    _check_decoder(document, path)
    markup, literal = _instance(document, path), _instance(document, path)
    literal.encode_special_tokens = True
    entries = markup.get_vocab(with_added_tokens=False)
    missing = bytes(byte for symbol, byte in byte_symbols().items() if symbol not in entries)
    vocabulary = _vocabulary(markup, entries)
    longest = max(1, *map(len, vocabulary.tokens))
    return Tokenizer(vocabulary, missing, longest, markup, literal)


def _instance(document: str, path: str) -> tokenizers.Tokenizer:
    try:
        tokenizer = tokenizers.Tokenizer.from_str(document)
    # The library raises plain exceptions for whatever it cannot read.
    except Exception as broken:
        raise BundleError(f"is not a tokenizer: {broken}", path=path) from broken
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _check_decoder(document: str, path: str) -> None:
    """Refuse what decodes by other rules than bytes: the table of bytes would be wrong."""
    try:
        decoder = json.loads(document)["decoder"] or {}
        kinds = [part.get("type") for part in decoder.get("decoders", [decoder])]
    except (ValueError, KeyError, TypeError, AttributeError) as broken:
        raise BundleError(f"is not a tokenizer: {broken!r}", path=path) from broken
    if "ByteLevel" not in kinds or not _DECODERS.issuperset(kinds):
        found = ", ".join(map(str, kinds))
        raise BundleError(f"must be ByteLevel, found {found}", path=path, field="decoder")


def _vocabulary(tokenizer: tokenizers.Tokenizer, entries: dict[str, int]) -> Vocabulary:
    added = tokenizer.get_added_tokens_decoder()
    table = {token: spelled_bytes(entry) for entry, token in entries.items()}
    table |= {token: entry.content.encode() for token, entry in added.items()}
    tokens = tuple(table.get(token, b"") for token in range(max(table, default=-1) + 1))
    return Vocabulary(tokens, frozenset(token for token, entry in added.items() if entry.special))


def _encode(tokenizer: tokenizers.Tokenizer, text: str, *, add_special: bool, field: str) -> Tokens:
    try:
        text.encode()
    except UnicodeEncodeError as lone:
        violation = FieldViolation(field, f"character {lone.start} is a lone surrogate")
        raise InvalidRequest(violation) from lone
    # `encode` keeps the interpreter's lock to its end. A batch releases it: measured over 500 kB,
    # another thread waited 0.5 s for the one and at most 14 ms for the other.
    (encoding,) = tokenizer.encode_batch_fast([text], add_special_tokens=add_special)
    return tuple(encoding.ids)
