"""A compiled grammar, and the tokenizer that its matchers read tokens by."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import llguidance
from llguidance import LLMatcher, LLTokenizer

from service.text.constraints.deep_stack import DeepStacks
from service.text.constraints.limits import Limits
from service.text.tokenizer import Tokenizer

# The one error of a mask that is no failure: no token may follow.
_DEAD_END = "NoExtensionBias"

# What begins the error of a check inside the library that failed; behind it stand its own frames.
_PANIC = "panic:"


class GrammarError(Exception):
    """A grammar does not compile; the text is the compiler's, about the client's own words."""


@dataclass(frozen=True, slots=True, eq=False)
class Grammar:
    """A compiled grammar; nobody advances its own matcher.

    Copies of a matcher share an automaton that grows as they are followed, up to a limit for all
    of them together.
    """

    source: str
    matcher: LLMatcher
    compilation: Compilation

    def anew(self) -> Grammar:
        """Return the same grammar with an automaton of its own, if that takes a moment only.

        Raises:
            GrammarError: it takes longer.
            GrammarsBusy: others are being compiled, and will be for longer.
        """
        return self.compilation.grammar(self.source, self.compilation.limits.restart_seconds)

    def has_room(self) -> bool:
        """Whether the shared automaton still grows, at the beginning at least."""
        return bits_of(self.matcher.deep_copy()) is not None


@dataclass(frozen=True, slots=True)
class Compilation:
    """How grammars over one vocabulary are compiled."""

    words: Words
    limits: Limits
    stacks: DeepStacks

    def grammar(self, source: str, seconds: float) -> Grammar:
        """Compile a grammar and compute its first mask, in so many seconds.

        Raises:
            GrammarError: it is malformed, refers to what is not there, or exceeds a limit.
            GrammarsBusy: too many others are being compiled.
        """
        try:
            return self.stacks.run(lambda: self._compiled(source), seconds)
        except TimeoutError as late:
            raise GrammarError(f"takes more than {seconds:g} s to compile") from late

    def _compiled(self, source: str) -> Grammar:
        limits = self.limits.of_parser()
        matcher = LLMatcher(self.words.tokenizer(), source, log_level=0, limits=limits)
        if matcher.is_error():
            raise GrammarError(_said(matcher.get_error()))
        if warnings := matcher.get_grammar_warnings():
            raise GrammarError("; ".join(warnings))
        grammar = Grammar(source, matcher, self)
        if not grammar.has_room():
            raise GrammarError("is too large to begin with")
        return grammar


def _said(error: str) -> str:
    return "is too large for the compiler" if error.startswith(_PANIC) else error


def bits_of(matcher: LLMatcher) -> bytes | None:
    """Return which tokens may follow; None where that cannot be computed within the limits."""
    bits = matcher.compute_bitmask()
    # What cannot be computed is given as a mask of the end alone, and so is a dead end.
    failed = matcher.is_error() and not matcher.get_error().startswith(_DEAD_END)
    return None if failed else bits


@dataclass(slots=True)
class Words:
    """A vocabulary as matchers read it, made when it is first needed: that takes a while.

    The end of an output is a token beyond the vocabulary here, so that a model's own end tokens
    mean nothing to a grammar.
    """

    model: Tokenizer
    _made: LLTokenizer | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def size(self) -> int:
        """Return the number of the model's tokens."""
        return self.model.vocabulary.size

    def tokenizer(self) -> LLTokenizer:
        """Return the vocabulary for matchers."""
        with self._lock:
            if self._made is None:
                wrapped = llguidance.TokenizerWrapper(_Spelled.of(self.model))
                self._made = LLTokenizer(wrapped)
            return self._made


@dataclass(frozen=True, slots=True)
class _Spelled:
    """What the library asks of a tokenizer."""

    tokens: Sequence[bytes]
    special_token_ids: Sequence[int]
    eos_token_id: int
    bos_token_id: int | None
    model: Tokenizer

    @classmethod
    def of(cls, model: Tokenizer) -> _Spelled:
        words = model.vocabulary
        return cls((*words.tokens, b""), sorted(words.special), words.size, None, model)

    def __call__(self, text: bytes) -> list[int]:
        return list(self.model.encode_text(text.decode(errors="replace"), add_special=False))
