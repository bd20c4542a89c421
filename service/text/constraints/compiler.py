"""Constraints of one model: checked, compiled once, and kept for the next request."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from concurrent.futures import Executor

from service.errors import FieldViolation, InvalidRequest
from service.text.constraints.bounds import Bounds
from service.text.constraints.deep_stack import DeepStacks
from service.text.constraints.grammar import Compilation, Grammar, GrammarError, Words
from service.text.constraints.limits import Limits
from service.text.constraints.source import own_field, source_of, violations
from service.text.constraints.state import Course, GrammarState
from service.text.language import Language
from service.text.tokenizer import Tokenizer

_SHOWN = 300
_BEHIND = re.compile(r"\n +\d+ \| |\. Enable ")

_DEFAULT_LIMITS = Limits()


class GrammarCompiler:
    """Compiles for one tokenizer; safe to call from any thread, and slow enough to avoid the loop.

    `end_tokens` are those of the model, which no grammar may name. With a `pool`, masks that are
    known to be needed are computed on its threads.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        end_tokens: frozenset[int] = frozenset(),
        limits: Limits = _DEFAULT_LIMITS,
        pool: Executor | None = None,
    ) -> None:
        self._words = Words(tokenizer)
        self._end_tokens = end_tokens
        self._limits = limits
        self._pool = pool
        self._compilation = Compilation(self._words, limits, DeepStacks(limits.compilations))
        self._kept = _Kept(limits)

    def prepare(self) -> None:
        """Read the vocabulary now, which otherwise the first compilation does."""
        self._words.tokenizer()

    def compile(self, language: Language, ends: frozenset[int], field: str) -> GrammarState:
        """Return where an output in a language begins; any of `ends` may end it where it matches.

        Raises:
            InvalidRequest: it is malformed, accepts nothing, or is beyond the limits; violations
                name the language inside `field`.
            GrammarsBusy: too many others are being compiled.
        """
        refused = tuple(violations(language, field, self._limits))
        if refused:
            raise InvalidRequest(*refused)
        own = own_field(language, field)
        try:
            grammar = self._grammar(language)
        except GrammarError as broken:
            raise InvalidRequest(FieldViolation(own, _shown(str(broken)))) from broken
        bounds = Bounds(field, self._words.size, ends, self._reserved(ends))
        state = GrammarState(Course(grammar, bounds, self._pool), grammar.matcher.deep_copy())
        if not any(state.mask()):
            raise InvalidRequest(FieldViolation(own, _emptiness(state)))
        return state

    def _reserved(self, ends: frozenset[int]) -> frozenset[int]:
        return self._end_tokens | ends | {self._words.size}

    def _grammar(self, language: Language) -> Grammar:
        kept = self._kept.get(language)
        if kept is not None and kept.has_room():
            return kept
        grammar = self._compilation.grammar(source_of(language), self._limits.compile_seconds)
        self._kept.put(language, grammar)
        return grammar


class _Kept:
    """The grammars used last."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self._grammars: OrderedDict[Language, Grammar] = OrderedDict()
        self._bytes = 0

    def get(self, language: Language) -> Grammar | None:
        with self._lock:
            if language not in self._grammars:
                return None
            self._grammars.move_to_end(language)
            return self._grammars[language]

    def put(self, language: Language, grammar: Grammar) -> None:
        with self._lock:
            self._drop(self._grammars.pop(language, None))
            self._grammars[language] = grammar
            self._bytes += len(grammar.source)
            while self._bytes > self._limits.cached_bytes or self._has_too_many():
                self._drop(self._grammars.popitem(last=False)[1])

    def _has_too_many(self) -> bool:
        return len(self._grammars) > self._limits.cached_grammars

    def _drop(self, grammar: Grammar | None) -> None:
        self._bytes -= len(grammar.source) if grammar is not None else 0


def _emptiness(state: GrammarState) -> str:
    if state.is_complete():
        return "accepts only the empty text, and no token may end it"
    return "accepts no text"


def _shown(message: str) -> str:
    """Return the compiler's complaint in one short line: no listing of the source, no advice.

    What it advises are options that would make a language wider than the client asked for.
    """
    said = _BEHIND.split(message)[0].replace("<non-verbose/>", "")
    line = " ".join(said.split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"
