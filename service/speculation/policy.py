"""Accept or replace: the rule that keeps the output the target's own.

Source: Leviathan et al. 2023, arXiv:2211.17192, algorithm 1. Acceptance is strict: a draw of
exactly zero must not accept an impossible token (docs/decisions/0004).
"""

from __future__ import annotations

from dataclasses import dataclass

from service.generation.randomness import RandomStream
from service.speculation.contract import Distribution, Proposal

Stream = RandomStream | None


@dataclass(frozen=True, slots=True)
class Accept:
    """The proposal stands."""


@dataclass(frozen=True, slots=True)
class Reject:
    """The proposal falls, and the target's `replacement` takes its place."""

    replacement: int


Decision = Accept | Reject


def acceptance_probability(target: float, draft: float) -> float:
    """Return min(1, target / draft).

    Zero where the target gives the token nothing; one where only the draft
    does, for it could not have drawn the token from what it handed over.
    """
    if target <= 0.0:
        return 0.0
    if draft <= 0.0:
        return 1.0
    return min(1.0, target / draft)


def draw(stream: Stream) -> tuple[float | None, Stream]:
    """Return the next uniform of a stream; None, which means argmax, without one."""
    if stream is None:
        return None, None
    return stream.draw()


def choose(target: Distribution, stream: Stream) -> tuple[int, Stream]:
    """Choose one token from the target's distribution."""
    uniform, stream = draw(stream)
    return target.sample(uniform), stream


def judge(target: Distribution, proposal: Proposal, stream: Stream) -> tuple[Decision, Stream]:
    """Accept one proposal or replace it; return the decision and the stream after it.

    Without a stream the lane is greedy: the target's choice decides alone and
    no probability is looked at.
    """
    if stream is None:
        chosen = target.sample(None)
        return (Accept() if chosen == proposal.token else Reject(chosen)), None
    acceptance = acceptance_probability(
        target.probability(proposal.token), proposal.distribution.probability(proposal.token)
    )
    uniform, after = stream.draw()
    if uniform < acceptance:
        return Accept(), after
    residual = target.excess_over(proposal.distribution)
    replacement, rest = choose(target if residual is None else residual, after)
    return Reject(replacement), rest
