"""The text of one output, forked for a round: token ids go in, semantic events come out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from service.errors import SemanticError
from service.generation.events import (
    Finished,
    ReasoningDelta,
    SemanticEvent,
    TextDelta,
    ToolArgumentsDelta,
)
from service.generation.finish import FinishReason, MatchedStop
from service.text.automaton import ROOT
from service.text.parser import PLAIN_TEXT, TextParser
from service.text.stops import NO_STOPS, StopSet
from service.text.utf8 import decode_complete, decode_end
from service.text.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class TextRules:
    """How the tokens of one output become events; shared by every fork of its state.

    Tokens in `silent` (the end-of-sequence tokens) add no text even where the
    vocabulary counts them as ordinary ones. Tokens in `markers` structure the output and are told
    to the parser instead. No stop matches before `min_tokens` tokens.
    """

    vocabulary: Vocabulary
    stops: StopSet = NO_STOPS
    include_stop: bool = False
    silent: frozenset[int] = frozenset()
    parser: TextParser = PLAIN_TEXT
    markers: Mapping[int, str] = field(default_factory=dict)
    min_tokens: int = 0

    def text_bytes(self, token: int) -> bytes:
        """Return what a token adds to this output's text."""
        return b"" if token in self.silent else self.vocabulary.text_bytes(token)


class _Phase(Enum):
    OPEN = auto()
    STOPPED = auto()
    ENDED = auto()


class GeneratedText:
    """A text state: bytes, then characters, then stops, then the parser, then events.

    Held back are the bytes of an unfinished character, and text that may still
    become a stop. Special tokens add nothing and separate nothing, but for a dialect's
    markers: they end what came before them, so that no stop or character lies across one.
    A stop token is recognised before its own text is looked at, and before what it cut off:
    what an end of the output makes of an unfinished character is no longer sought for stops.
    """

    __slots__ = (
        "_node",
        "_parser",
        "_phase",
        "_reasoning_tokens",
        "_rules",
        "_staged",
        "_tokens",
        "_unfinished",
    )

    def __init__(self, rules: TextRules) -> None:
        self._rules = rules
        self._unfinished = b""
        self._node = ROOT
        self._parser = rules.parser
        self._phase = _Phase.OPEN
        self._tokens = 0
        self._reasoning_tokens = 0
        self._staged: list[SemanticEvent] = []

    @property
    def reasoning_tokens(self) -> int:
        """Return how many tokens came while the parser was reading the reasoning."""
        return self._reasoning_tokens

    def fork(self) -> GeneratedText:
        """Return an independent copy with no staged events, in constant time."""
        copy = GeneratedText(self._rules)
        copy._unfinished = self._unfinished
        copy._node = self._node
        copy._parser = self._parser
        copy._phase = self._phase
        copy._tokens = self._tokens
        copy._reasoning_tokens = self._reasoning_tokens
        return copy

    def push_token(self, token: int) -> MatchedStop | None:
        """Stage one token and return the stop that it completed, if any.

        Raises:
            SemanticError: the output has ended, or the id is not a token.
        """
        if self._phase is not _Phase.OPEN:
            raise SemanticError("push_token", "the output has already ended")
        if not 0 <= token < self._rules.vocabulary.size:
            raise SemanticError("push_token", self._rules.vocabulary.refusal(token))
        self._tokens += 1
        self._reasoning_tokens += self._parser.is_reasoning
        stop = self._rules.stops.by_token.get(token)
        if stop is not None and self._tokens > self._rules.min_tokens:
            self._stop_at_token(token, stop)
            return stop
        marker = self._rules.markers.get(token)
        if marker is None:
            return self._read(*decode_complete(self._unfinished + self._rules.text_bytes(token)))
        stop = self._read(decode_end(self._unfinished), b"")
        if stop is None:
            self._mark(marker)
        return stop

    def finish(self, reason: FinishReason) -> None:
        """Stage the end: what is held back is released, unless a stop has disposed of it.

        Raises:
            SemanticError: the output has ended before.
        """
        if self._phase is _Phase.ENDED:
            raise SemanticError("finish", "the output has already ended")
        self._release_held()
        self._end(self._parser.finish(), reason)

    def cancel(self) -> None:
        """Stage the cancelled end and drop what is held back; an ended output stays as it is."""
        if self._phase is not _Phase.ENDED:
            self._end((), FinishReason.CANCELLED)

    def take_events(self) -> tuple[SemanticEvent, ...]:
        """Drain the staged events, in order; neighbouring deltas are one event."""
        staged, self._staged = self._staged, []
        return _coalesce(staged)

    def _read(self, text: str, unfinished: bytes) -> MatchedStop | None:
        """Read text up to the first stop; what follows it is dropped, `unfinished` bytes too."""
        self._unfinished = unfinished
        muted = self._tokens <= self._rules.min_tokens
        scan = self._rules.stops.automaton.scan(self._node, text, muted=muted)
        self._node = scan.node
        self._emit(scan.released)
        if scan.match is None:
            return None
        stop = self._rules.stops.texts[scan.match]
        if self._rules.include_stop:
            self._emit(stop.text or "")
        self._unfinished = b""
        self._phase = _Phase.STOPPED
        return stop

    def _mark(self, marker: str) -> None:
        self._release_held()
        self._parser, events = self._parser.mark(marker)
        self._staged.extend(events)

    def _stop_at_token(self, token: int, stop: MatchedStop) -> None:
        if self._rules.include_stop:
            written = stop.text.encode() if stop.text else self._rules.text_bytes(token)
            self._unfinished += written
        self._release_held()
        self._phase = _Phase.STOPPED

    def _release_held(self) -> None:
        self._emit(self._rules.stops.automaton.held(self._node) + decode_end(self._unfinished))
        self._node, self._unfinished = ROOT, b""

    def _emit(self, text: str) -> None:
        if text:
            self._parser, events = self._parser.read(text)
            self._staged.extend(events)

    def _end(self, last: tuple[SemanticEvent, ...], reason: FinishReason) -> None:
        self._staged.extend((*last, Finished(reason)))
        self._phase = _Phase.ENDED


def _coalesce(events: Iterable[SemanticEvent]) -> tuple[SemanticEvent, ...]:
    """Join neighbours that go on with the same text, reasoning or arguments."""
    joined: list[SemanticEvent] = []
    for event in events:
        match joined[-1:], event:
            case [TextDelta(before)], TextDelta(text):
                joined[-1] = TextDelta(before + text)
            case [ReasoningDelta(before)], ReasoningDelta(text):
                joined[-1] = ReasoningDelta(before + text)
            case [ToolArgumentsDelta(index, before)], ToolArgumentsDelta(_, text):
                joined[-1] = ToolArgumentsDelta(index, before + text)
            case _:
                joined.append(event)
    return tuple(joined)
