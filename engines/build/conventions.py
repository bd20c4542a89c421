"""What a GGUF file leaves unsaid about its tokenizer, and the name of its pre-tokenizer implies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tokenizers import Regex
from tokenizers.pre_tokenizers import ByteLevel, Digits, PreTokenizer, Sequence, Split

_LLAMA_3_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
    r"|[^\r\n\p{L}\p{N}]?\p{L}+"
    r"|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+"
    r"|\s+(?!\S)"
    r"|\s+"
)
"""Llama 3's published expression: contractions, words, digits by threes, symbols, white space."""


@dataclass(frozen=True, slots=True)
class Convention:
    """How texts are cut and tokens are used under one pre-tokenizer name.

    `ignore_merges` takes a piece that is in the vocabulary whole, even where no
    merges lead to it. `add_bos` holds where the file does not say. `ends` are
    the control tokens that end a sequence or a turn beside those the file names.
    """

    pre_tokenizer: PreTokenizer
    ignore_merges: bool = False
    add_bos: bool = False
    ends: frozenset[str] = frozenset()


CONVENTIONS: Mapping[str, Convention] = MappingProxyType(
    {
        "smollm": Convention(
            Sequence(
                [Digits(individual_digits=True), ByteLevel(add_prefix_space=False, use_regex=True)]
            )
        ),
        "llama-bpe": Convention(
            Sequence(
                [
                    Split(Regex(_LLAMA_3_WORDS), behavior="isolated"),
                    ByteLevel(add_prefix_space=False, use_regex=False),
                ]
            ),
            ignore_merges=True,
            add_bos=True,
            ends=frozenset({"<|end_of_text|>", "<|eom_id|>", "<|eot_id|>"}),
        ),
    }
)
"""By the value of `tokenizer.ggml.pre`."""
