"""Turn GGUF vocabulary metadata into a `tokenizer.json` of the tokenizers library."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders
from tokenizers.models import BPE
from tokenizers.processors import TemplateProcessing

from engines.build.conventions import CONVENTIONS, Convention
from engines.build.gguf_metadata import GgufMetadata
from engines.build.gguf_source import GgufModel
from engines.bundle.fingerprint import tokenizer_fingerprint
from engines.bundle.manifest import SpecialTokens

_CONTROL = 3
_USER_DEFINED = 4
_UNUSED = 5


@dataclass(frozen=True, slots=True)
class BuiltTokenizer:
    """A tokenizer, the name of its vocabulary, its special ids and its chat template."""

    tokenizer: Tokenizer
    fingerprint: bytes
    tokens: SpecialTokens
    chat_template: str | None

    def save(self, path: Path) -> None:
        self.tokenizer.save(str(path), pretty=False)


@dataclass(frozen=True, slots=True)
class _Entry:
    """One token of the vocabulary and what it is for."""

    text: str
    kind: int


def tokenizer_from_gguf(model: GgufModel) -> BuiltTokenizer:
    """Rebuild the byte-level BPE tokenizer that a GGUF file describes.

    Byte symbols that the vocabulary lacks have no token, and such bytes are
    dropped from a prompt, as llama.cpp does. Unused entries at its end pad the
    embedding and are no tokens. Raises BundleError for a tokenizer model or
    pre-tokenizer that is not reproduced here exactly.
    """
    metadata = model.metadata
    convention = _convention(metadata)
    entries = _used(_entries(metadata, model.description.geometry.vocabulary))
    merges = [_merge(each) for each in metadata.strings("tokenizer.ggml.merges")]
    ids = {entry.text: index for index, entry in enumerate(entries)}
    tokenizer = Tokenizer(BPE(ids, merges, ignore_merges=convention.ignore_merges))
    tokenizer.pre_tokenizer = convention.pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(_added(entries, _CONTROL))
    tokenizer.add_tokens(_added(entries, _USER_DEFINED))
    tokens = _special_tokens(metadata, convention, entries)
    if tokens.add_bos:
        leading = metadata.integer("tokenizer.ggml.bos_token_id")
        tokenizer.post_processor = _leading(entries[leading].text, leading)
    return BuiltTokenizer(
        tokenizer=tokenizer,
        fingerprint=tokenizer_fingerprint([entry.text for entry in entries], merges),
        tokens=tokens,
        chat_template=metadata.text("tokenizer.chat_template", "") or None,
    )


def _convention(metadata: GgufMetadata) -> Convention:
    model = metadata.text("tokenizer.ggml.model")
    if model != "gpt2":
        called = "SentencePiece, 'llama'" if model == "llama" else repr(model)
        message = f"is {called}; only byte-level BPE, 'gpt2', is reproduced exactly"
        raise metadata.refusal("tokenizer.ggml.model", message)
    name = metadata.text("tokenizer.ggml.pre")
    if name not in CONVENTIONS:
        message = f"is {name!r}; reproduced exactly are {', '.join(CONVENTIONS)}"
        raise metadata.refusal("tokenizer.ggml.pre", message)
    return CONVENTIONS[name]


def _entries(metadata: GgufMetadata, rows: int) -> list[_Entry]:
    texts = metadata.strings("tokenizer.ggml.tokens")
    kinds = metadata.integers("tokenizer.ggml.token_type")
    if len(kinds) != len(texts):
        message = f"has {len(kinds)} entries for {len(texts)} tokens"
        raise metadata.refusal("tokenizer.ggml.token_type", message)
    if len(texts) > rows:
        message = f"has {len(texts)} entries, the embedding has {rows} rows"
        raise metadata.refusal("tokenizer.ggml.tokens", message)
    return [_Entry(text, kind) for text, kind in zip(texts, kinds, strict=True)]


def _used(entries: list[_Entry]) -> list[_Entry]:
    """Return the entries without the padding at their end."""
    size = next((i + 1 for i, e in reversed([*enumerate(entries)]) if e.kind != _UNUSED), 0)
    return entries[:size]


def _added(entries: list[_Entry], kind: int) -> list[AddedToken]:
    texts = [entry.text for entry in entries if entry.kind == kind]
    return [AddedToken(text, normalized=False, special=kind == _CONTROL) for text in texts]


def _special_tokens(
    metadata: GgufMetadata, convention: Convention, entries: list[_Entry]
) -> SpecialTokens:
    def token(name: str) -> int | None:
        key = f"tokenizer.ggml.{name}_token_id"
        if not metadata.has(key):
            return None
        found = metadata.integer(key)
        if not 0 <= found < len(entries):
            raise metadata.refusal(key, f"is {found}, there are {len(entries)} tokens")
        return found

    named = (token("eos"), token("eot"), token("eom"))
    known = (
        index
        for index, entry in enumerate(entries)
        if entry.kind == _CONTROL and entry.text in convention.ends
    )
    return SpecialTokens(
        bos=token("bos"),
        eos=tuple(dict.fromkeys(each for each in (*named, *known) if each is not None)),
        pad=token("padding"),
        unknown=token("unknown"),
        add_bos=metadata.flag("tokenizer.ggml.add_bos_token", default=convention.add_bos),
    )


def _leading(text: str, token: int) -> TemplateProcessing:
    """Put the leading token before a text, for whoever asks for special tokens."""
    return TemplateProcessing(single=[text, "$A"], pair=None, special_tokens=[(text, token)])


def _merge(line: str) -> tuple[str, str]:
    left, _, right = line.partition(" ")
    return left, right
