"""The stops of a request: texts found in its text, tokens found by id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from service.errors import FieldViolation, InvalidRequest
from service.generation.finish import MatchedStop
from service.text.automaton import TextAutomaton
from service.text.vocabulary import Vocabulary

MAX_STOPS = 64
MAX_STOP_CHARACTERS = 4096
"""All texts of a request together: what bounds the automaton's memory."""


class RequestedStop(Protocol):
    """A stop as a request states it: exactly one of text and token id."""

    @property
    def text(self) -> str | None:
        """Return the text to look for."""

    @property
    def token_id(self) -> int | None:
        """Return the token to look for."""


@dataclass(frozen=True, slots=True)
class StopSet:
    """What ends an output; immutable, and shared by all states of a request.

    Of several texts, the one that is complete first wins, whichever tokens spell
    it; of those complete at one character, the one that began first. Of equal
    stops, the first in the request's order is reported.
    """

    texts: tuple[MatchedStop, ...] = ()
    automaton: TextAutomaton = field(default_factory=lambda: TextAutomaton(()))
    by_token: Mapping[int, MatchedStop] = field(default_factory=dict)


NO_STOPS = StopSet()


def compile_stops(
    stops: Sequence[RequestedStop], vocabulary: Vocabulary, field: str = "stops"
) -> StopSet:
    """Prepare the stops of a request.

    A text that names a special token is matched by that token too, which adds no
    text in which it could be found.

    Raises:
        InvalidRequest: some are empty, not tokens of the vocabulary, or too many or
            too long together; it names each by its place in `field`.
    """
    if violations := _violations(stops, vocabulary, field):
        raise InvalidRequest(*violations)
    texts: dict[str, MatchedStop] = {}
    by_token: dict[int, MatchedStop] = {}
    for index, stop in enumerate(stops):
        matched = MatchedStop(index, text=stop.text, token_id=stop.token_id)
        token = stop.token_id
        if stop.text is not None:
            texts.setdefault(stop.text, matched)
            token = vocabulary.special_id(stop.text)
        if token is not None:
            by_token.setdefault(token, matched)
    return StopSet(tuple(texts.values()), TextAutomaton(tuple(texts)), by_token)


def _violations(
    stops: Sequence[RequestedStop], vocabulary: Vocabulary, field: str
) -> list[FieldViolation]:
    if len(stops) > MAX_STOPS:
        return [FieldViolation(field, f"at most {MAX_STOPS} stops, got {len(stops)}")]
    characters = sum(len(stop.text or "") for stop in stops)
    if characters > MAX_STOP_CHARACTERS:
        limit = f"at most {MAX_STOP_CHARACTERS} characters together"
        return [FieldViolation(field, f"{limit}, got {characters}")]
    found = []
    for index, stop in enumerate(stops):
        if problem := _problem(stop, vocabulary):
            part, description = problem
            found.append(FieldViolation(f"{field}[{index}]{part}", description))
    return found


def _problem(stop: RequestedStop, vocabulary: Vocabulary) -> tuple[str, str] | None:
    if (stop.text is None) == (stop.token_id is None):
        return "", "must be either a text or a token id"
    if stop.text == "":
        return ".text", "must not be empty"
    if stop.token_id is not None and not 0 <= stop.token_id < vocabulary.size:
        return ".token_id", vocabulary.refusal(stop.token_id)
    return None
