"""What one streamed answer brought, and when: the text, and what speculation made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from outrider import Admitted, Event, Finished, ReasoningDelta, Round, TextDelta, Token


@dataclass(slots=True)
class Transcript:
    """Takes the events of one answer; times are clock times in seconds."""

    started: float
    admitted: Admitted | None = None
    finished: Finished | None = None
    tokens: list[Token] = field(default_factory=list)
    _text: list[str] = field(default_factory=list)
    _reasoning: list[str] = field(default_factory=list)
    _first: float = 0.0
    _last: float = 0.0
    _first_tokens: int = 0

    def take(self, event: Event, now: float) -> str:
        """Note an event that came at `now`, and return the text that it brought."""
        match event:
            case Admitted():
                self.admitted = event
            case Round():
                self._take_round(event, now)
            case TextDelta(text):
                self._text.append(text)
                return text
            case ReasoningDelta(text):
                self._reasoning.append(text)
            case Finished():
                self.finished = event
            case _:
                pass
        return ""

    def _take_round(self, committed: Round, now: float) -> None:
        if not self.tokens:
            self._first, self._first_tokens = now, len(committed.tokens)
        self._last = now
        self.tokens.extend(committed.tokens)

    @property
    def text(self) -> str:
        """Return the text so far."""
        return "".join(self._text)

    @property
    def reasoning(self) -> str:
        """Return the reasoning so far."""
        return "".join(self._reasoning)

    @property
    def token_ids(self) -> tuple[int, ...]:
        """Return the tokens so far."""
        return tuple(token.id for token in self.tokens)

    @property
    def seconds_to_first(self) -> float:
        """Return how long the first token took, prefill and all."""
        return self._first - self.started

    @property
    def tokens_per_second(self) -> float | None:
        """Return the rate of the tokens after the first; None where there is none."""
        seconds = self._last - self._first
        return (len(self.tokens) - self._first_tokens) / seconds if seconds > 0 else None


def facts(transcript: Transcript) -> dict[str, object]:
    """Return a finished answer as JSON has it; what does not exist is null."""
    admitted, finished = transcript.admitted, transcript.finished
    if admitted is None or finished is None:
        return {}
    speculation, counted = admitted.speculation, finished.statistics
    return {
        "model": admitted.model,
        "text": transcript.text,
        "reasoning": transcript.reasoning or None,
        "token_ids": transcript.token_ids,
        "logprobs": _logprobs(transcript),
        "reason": finished.reason.name,
        "prompt_tokens": finished.prompt_tokens,
        "completion_tokens": finished.completion_tokens,
        "reasoning_tokens": finished.reasoning_tokens,
        "seed": admitted.seed,
        "seconds_to_first": transcript.seconds_to_first,
        "tokens_per_second": transcript.tokens_per_second,
        "proposer": speculation.proposer or None,
        "num_speculative_tokens": speculation.num_speculative_tokens,
        "off_detail": speculation.off_detail or None,
        "rounds": counted.rounds,
        "plain_steps": counted.plain_steps,
        "draft_tokens": counted.draft_tokens,
        "judged_tokens": counted.judged_tokens,
        "accepted_tokens": counted.accepted_tokens,
        "acceptance_rate": counted.acceptance_rate if counted.judged_tokens else None,
        "acceptance_length": counted.acceptance_length if counted.rounds else None,
    }


def _logprobs(transcript: Transcript) -> list[dict[str, object]] | None:
    """Return the log-probabilities of the tokens, None where none were asked for."""
    scored = [
        {
            "logprob": token.logprob,
            "alternatives": [(other.id, other.logprob) for other in token.alternatives],
        }
        for token in transcript.tokens
        if token.logprob is not None
    ]
    return scored or None


def scored_ids(transcript: Transcript) -> tuple[int, ...]:
    """Return the tokens that scores speak of, each once."""
    scored = [token for token in transcript.tokens if token.logprob is not None]
    others = (other.id for token in scored for other in token.alternatives)
    return tuple(dict.fromkeys((*(token.id for token in scored), *others)))


def scores(transcript: Transcript, texts: Mapping[int, str]) -> tuple[str, ...]:
    """Return a line for each token: its id, log-probability and text, and the likeliest ones."""
    return tuple(
        f"{token.id:>8} {token.logprob:>9.4f}  {texts[token.id]!r:<16}"
        + "".join(f"  {texts[other.id]!r} {other.logprob:.4f}" for other in token.alternatives)
        for token in transcript.tokens
        if token.logprob is not None
    )


def summary(transcript: Transcript) -> tuple[tuple[str, str], ...]:
    """Return what to tell people about a finished answer, by name."""
    admitted, finished = transcript.admitted, transcript.finished
    if admitted is None or finished is None:
        return ()
    speculation, counted = admitted.speculation, finished.statistics
    on = f"{speculation.proposer}, at most {speculation.num_speculative_tokens} tokens a round"
    return (
        ("model", admitted.model),
        ("seed", str(admitted.seed)),
        ("prompt", f"{finished.prompt_tokens} tokens"),
        ("output", f"{finished.completion_tokens} tokens, ended by {finished.reason.name}"),
        ("first token", f"after {1e3 * transcript.seconds_to_first:.0f} ms"),
        ("rate", f"{rate(transcript.tokens_per_second)} tokens/s after the first"),
        ("speculation", on if speculation.proposer else f"off: {speculation.off_detail}"),
        ("rounds", f"{counted.rounds}, and {counted.plain_steps} plain steps"),
        ("proposals", f"{counted.draft_tokens} drafted, {counted.accepted_tokens} accepted"),
        ("acceptance rate", acceptance_rate(transcript)),
        ("acceptance length", acceptance_length(transcript)),
    )


def rate(tokens_per_second: float | None) -> str:
    """Return a rate as people read it."""
    return "none" if tokens_per_second is None else f"{tokens_per_second:.1f}"


def acceptance_rate(transcript: Transcript) -> str:
    """Return which share of the judged proposals was accepted."""
    finished = transcript.finished
    if finished is None or not finished.statistics.judged_tokens:
        return "none"
    return f"{100 * finished.statistics.acceptance_rate:.0f} %"


def acceptance_length(transcript: Transcript) -> str:
    """Return the mean number of tokens that a round committed."""
    finished = transcript.finished
    if finished is None or not finished.statistics.rounds:
        return "none"
    return f"{finished.statistics.acceptance_length:.2f}"
