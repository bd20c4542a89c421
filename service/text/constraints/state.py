"""Where an output stands in its grammar."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from time import thread_time
from typing import TypeVar
from weakref import ref

from llguidance import LLMatcher

from service.errors import GrammarsBusy
from service.text.constraints.allowance import Allowance
from service.text.constraints.bounds import Bounds, Closed
from service.text.constraints.grammar import Grammar, GrammarError, bits_of

Result = TypeVar("Result")

Path = tuple["Path", int] | None
"""The tokens of an output, the last one outside; what comes before is shared, not copied."""

# The states of a pass and of what was drafted beyond it, with room to spare.
_REMEMBERED = 48


class Course:
    """What the states of one output share: their lock, their grammar, and which still remember.

    A state remembers its successors until some dozen others have got theirs: an output of any
    length keeps that many states alive.
    """

    def __init__(self, grammar: Grammar, bounds: Bounds, pool: Executor | None) -> None:
        self.bounds = bounds
        self.pool = pool
        self.lock = threading.Lock()
        self.grammar = grammar
        self.is_alone = False
        self.allowance = Allowance(grammar.compilation.limits)
        self._remembering: deque[ref[GrammarState]] = deque()

    @property
    def is_too_slow(self) -> bool:
        """Whether the output has taken so long that it is given up."""
        return self.allowance.is_spent

    def measured(self, work: Callable[[], Result]) -> Result:
        """Return the result of a step, which is charged to the output's allowance.

        Processor time is counted: a busy machine fails no one's output.
        """
        begun = thread_time()
        result = work()
        self.allowance.charge(thread_time() - begun)
        return result

    def remember(self, state: GrammarState) -> None:
        """Note that a state has got successors; the oldest to have some forgets them."""
        self._remembering.append(ref(state))
        if len(self._remembering) > _REMEMBERED:
            oldest = self._remembering.popleft()()
            if oldest is not None:
                oldest.forget()

    def go_alone(self) -> bool:
        """Leave the shared automaton, which is full, for an own one; once."""
        if self.is_alone:
            return False
        self.is_alone = True
        try:
            self.grammar = self.grammar.anew()
        except (GrammarError, GrammarsBusy):
            return False
        return True


class GrammarState:
    """One point of an output; a value to all who hold it, and safe to use from several threads.

    Its matcher is advanced on copies only. What it learns stays with it: its mask, and for a
    while the states after it.
    """

    __slots__ = (
        "__weakref__",
        "_accepts",
        "_continues",
        "_course",
        "_grammar",
        "_mask",
        "_matcher",
        "_path",
        "_successors",
    )

    def __init__(self, course: Course, matcher: LLMatcher, path: Path = None) -> None:
        self._course = course
        self._grammar = course.grammar
        self._matcher = matcher
        self._path = path
        self._successors: dict[int, State] = {}
        self._accepts = False
        self._continues = False
        self._mask: bytes | None = None

    @property
    def field(self) -> str:
        return self._course.bounds.field

    def after(self, token: int) -> State:
        """Return the state after one more token; the same one each time, for a while."""
        with self._course.lock:
            if token not in self._successors:
                self._successors[token] = self._successor(token)
                if len(self._successors) == 1:
                    self._course.remember(self)
            return self._successors[token]

    def permits(self, token: int) -> bool:
        """Whether this token may follow; a failure to tell is False, and `mask` raises it."""
        bounds = self._course.bounds
        with self._course.lock:
            if self._mask is not None:
                return _has(self._mask, token)
            if token in bounds.reserved:
                return token in bounds.ends and self._matcher.is_accepting()
            if self._course.is_too_slow or not 0 <= token < bounds.size:
                return False
            return self._course.measured(lambda: self._matcher.validate_tokens([token])) == 1

    def mask(self) -> bytes:
        """Return which tokens may follow, as bits in the order of the ids.

        Raises:
            ConstraintFailed: that cannot be computed within the limits.
        """
        with self._course.lock:
            if self._mask is None:
                self._compute()
            if self._mask is None:
                raise self._course.bounds.failure()
            return self._mask

    def prefetch(self) -> None:
        """Let a pool compute the mask, if there is one."""
        if self._course.pool is not None and self._mask is None:
            self._course.pool.submit(self._prefetched)

    def is_complete(self) -> bool:
        """Whether the grammar accepts and no text may follow."""
        with self._course.lock:
            if self._mask is None:
                if not self._matcher.is_accepting():
                    return False
                self._compute()
            return self._accepts and not self._continues

    def forget(self) -> None:
        """Let go of the states after this one."""
        self._successors = {}

    def _prefetched(self) -> None:
        with self._course.lock:
            if self._mask is None:
                self._compute()

    def _compute(self) -> None:
        """Fill in the mask, or leave it out where it cannot be computed."""
        bits = self._bits()
        if bits is None and self._restarted():
            bits = self._bits()
        if bits is None:
            return
        bounds = self._course.bounds
        mask = bounds.without_ends(bits)
        self._accepts = self._matcher.is_accepting()
        self._continues = bool(mask.strip(b"\0"))
        self._mask = bounds.with_ends(mask) if self._accepts else bytes(mask)

    def _bits(self) -> bytes | None:
        if self._course.is_too_slow:
            return None
        return self._course.measured(lambda: bits_of(self._matcher))

    def _successor(self, token: int) -> State:
        bounds = self._course.bounds
        if token in bounds.reserved or not 0 <= token < bounds.size:
            return Closed(bounds)
        fork = self._fork(token)
        if fork is None and not self._should_follow(token):
            return Closed(bounds, failed=self._mask is None)
        fork = fork or self._fork(token)
        if fork is None and self._restarted():
            fork = self._fork(token)
        return fork or Closed(bounds, failed=True)

    def _fork(self, token: int) -> GrammarState | None:
        matcher = self._matcher.deep_copy()
        if not self._course.measured(lambda: _consumes(matcher, token)):
            return None
        state = GrammarState(self._course, matcher, (self._path, token))
        state._grammar = self._grammar
        return state

    def _should_follow(self, token: int) -> bool:
        """Whether a token was refused for want of room in the automaton only.

        The refusal does not say so; the mask does.
        """
        if self._mask is None:
            self._compute()
        return self._mask is not None and _has(self._mask, token)

    def _restarted(self) -> bool:
        """Follow the output again in an own automaton, where the shared one is full."""
        course = self._course
        if course.is_too_slow:
            return False
        if self._grammar is course.grammar and not course.go_alone():
            return False
        self._grammar = course.grammar
        matcher = self._grammar.matcher.deep_copy()
        if not all(_consumes(matcher, token) for token in _tokens(self._path)):
            return False
        self._matcher = matcher
        return True


State = GrammarState | Closed


def _consumes(matcher: LLMatcher, token: int) -> bool:
    return matcher.try_consume_tokens([token]) == 1


def _has(mask: bytes, token: int) -> bool:
    place = token // 8
    return 0 <= place < len(mask) and bool(mask[place] >> token % 8 & 1)


def _tokens(path: Path) -> Iterator[int]:
    backwards = []
    while path is not None:
        path, token = path
        backwards.append(token)
    return reversed(backwards)
