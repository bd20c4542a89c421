"""Turn GGUF vocabulary metadata into a `tokenizer.json` of the tokenizers library."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE

from engines.build.gguf_source import GgufModel
from engines.bundle.fingerprint import tokenizer_fingerprint
from engines.bundle.manifest import SpecialTokens
from service.errors import BundleError

_CONTROL = 3
_USER_DEFINED = 4


@dataclass(frozen=True, slots=True)
class BuiltTokenizer:
    """A tokenizer, the name of its vocabulary, its special ids and its chat template."""

    tokenizer: Tokenizer
    fingerprint: bytes
    tokens: SpecialTokens
    chat_template: str | None

    def save(self, path: Path) -> None:
        self.tokenizer.save(str(path), pretty=False)


def tokenizer_from_gguf(model: GgufModel) -> BuiltTokenizer:
    """Rebuild the byte-level BPE tokenizer that a GGUF file describes.

    Byte symbols that the vocabulary lacks have no token, and such bytes are
    dropped from a prompt, as llama.cpp does. Raises BundleError for a tokenizer
    model or pre-tokenizer that is not reproduced here exactly.
    """
    _require(model, "tokenizer.ggml.model", "gpt2")
    _require(model, "tokenizer.ggml.pre", "smollm")
    vocabulary = model.strings("tokenizer.ggml.tokens")
    merges = [_merge(each) for each in model.strings("tokenizer.ggml.merges")]
    bpe = BPE(vocab={token: index for index, token in enumerate(vocabulary)}, merges=merges)
    tokenizer = Tokenizer(bpe)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    _add_special_tokens(tokenizer, vocabulary, model.integers("tokenizer.ggml.token_type"))
    return BuiltTokenizer(
        tokenizer=tokenizer,
        fingerprint=tokenizer_fingerprint(vocabulary, merges),
        tokens=_special_tokens(model),
        chat_template=model.text("tokenizer.chat_template", "") or None,
    )


def _add_special_tokens(tokenizer: Tokenizer, vocabulary: list[str], types: list[int]) -> None:
    def added(kind: int) -> list[AddedToken]:
        texts = [text for text, each in zip(vocabulary, types, strict=True) if each == kind]
        return [AddedToken(text, normalized=False, special=kind == _CONTROL) for text in texts]

    tokenizer.add_special_tokens(added(_CONTROL))
    tokenizer.add_tokens(added(_USER_DEFINED))


def _special_tokens(model: GgufModel) -> SpecialTokens:
    def token(name: str) -> int | None:
        key = f"tokenizer.ggml.{name}_token_id"
        return model.integer(key) if model.has(key) else None

    ends = (token("eos"), token("eot"))
    return SpecialTokens(
        bos=token("bos"),
        eos=tuple(dict.fromkeys(each for each in ends if each is not None)),
        pad=token("padding"),
        unknown=token("unknown"),
        add_bos=model.flag("tokenizer.ggml.add_bos_token", default=False),
    )


def _merge(line: str) -> tuple[str, str]:
    left, _, right = line.partition(" ")
    return left, right


def _require(model: GgufModel, key: str, expected: str) -> None:
    found = model.text(key)
    if found != expected:
        message = f"is {found!r}; only {expected!r} is reproduced exactly"
        raise BundleError(message, path=str(model.path), field=key)
