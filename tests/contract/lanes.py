"""Lanes driven by hand: what the core would do, one call at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from service.generation.config import ResolvedGenerationConfig
from service.generation.randomness import AddressedRandomness
from service.speculation.contract import (
    CommitInput,
    CommitResult,
    Constraint,
    Distribution,
    History,
    PassOutput,
    PrefillInput,
    Sampler,
    SamplingInput,
    Submission,
    Target,
    Tokens,
    VerificationInput,
)
from tests.neutral import SAMPLED

Row = tuple[float, ...]


def row_of(distribution: Distribution, vocabulary: int) -> Row:
    """Return a whole distribution as numbers."""
    return tuple(distribution.probability(token) for token in range(vocabulary))


@dataclass(frozen=True, slots=True)
class Sure:
    """The distribution of a token that was bound to come."""

    token: int

    def probability(self, token: int) -> float:
        return float(token == self.token)

    def sample(self, draw: float | None) -> int:
        return self.token

    def excess_over(self, draft: Distribution) -> None:
        return None


@dataclass(slots=True)
class DrivenLane:
    """One lane of a target; its cache holds the prompt and all generated tokens but the last.

    `base` is the boundary below the last submitted inputs. `vocabulary` None is the engine's.
    """

    target: Target
    slot: int
    prompt: Tokens
    generated: Tokens = ()
    config: ResolvedGenerationConfig = field(default=SAMPLED)
    base: int = 0
    constraint: Constraint | None = None
    ends: frozenset[int] = frozenset()
    coins: AddressedRandomness | None = None
    breakers: frozenset[int] = frozenset()
    vocabulary: int | None = None

    @property
    def fresh(self) -> Sampler:
        """Return the request's sampling state before its first token."""
        return self.target.sampler(
            SamplingInput(
                config=self.config,
                prompt=self.prompt,
                vocabulary_size=self.vocabulary or self.target.limits.vocabulary_size,
                end_token_ids=self.ends,
                run_breakers=self.breakers,
                coins=self.coins,
                constraint=self.constraint,
            )
        )

    @property
    def sampler(self) -> Sampler:
        """Return the lane's sampling state, after all generated tokens."""
        sampler = self.fresh
        for token in self.generated:
            sampler = sampler.advance(Sure(token), token)
        return sampler

    def chunk(
        self, tokens: Tokens, *, is_last: bool = True, every_row: bool = False
    ) -> PrefillInput:
        """Return a chunk of the prompt to submit."""
        self.base = self.target.checkpoint(self.slot)
        history = History(self.prompt, ())
        return PrefillInput(
            self.slot, self.base, tokens, is_last, history, self.fresh, every_row=every_row
        )

    def inputs(self, proposals: Tokens = ()) -> VerificationInput:
        """Return the leading input and proposals to submit; none is a plain step."""
        self.base = self.target.checkpoint(self.slot)
        tokens = (self.generated[-1], *proposals)
        history = History(self.prompt, self.generated)
        return VerificationInput(self.slot, self.base, tokens, history, self.sampler)

    def kept(self, inputs: int, lane: int = 0) -> CommitInput:
        """Return a commit of the first inputs of the last pass, where the lane had this index."""
        return CommitInput(lane, self.slot, self.base, inputs)

    def rows(self, output: PassOutput, lane: int, count: int) -> list[Row]:
        """Return the first rows that the lane at an index has in a pass."""
        rows, sampler = output.rows(lane), self.sampler
        vocabulary = self.target.limits.vocabulary_size
        return [row_of(rows.distribution(row, sampler), vocabulary) for row in range(count)]


def commit(target: Target, output: PassOutput, *commits: CommitInput) -> None:
    """Commit, expect every lane to succeed, and release the pass."""
    results = target.commit(output, commits)
    output.release()
    assert [CommitResult] * len(commits) == [type(result) for result in results]


def feed_prompt(lane: DrivenLane, chunk: int | None = None) -> Row:
    """Feed a lane's prompt, whole or in chunks; return the row after it."""
    size = chunk or len(lane.prompt)
    rows: list[Row] = []
    for start in range(0, len(lane.prompt), size):
        tokens = lane.prompt[start : start + size]
        is_last = start + size >= len(lane.prompt)
        submission = lane.target.prefill([lane.chunk(tokens, is_last=is_last)])
        submission.completion.wait()
        rows = lane.rows(submission.output, 0, int(is_last))
        commit(lane.target, submission.output, lane.kept(len(tokens)))
    return rows[-1]


def open_lane(target: Target, prompt: Tokens, *generated: int, **settings) -> DrivenLane:
    """Open a lane whose cache holds the prompt, and the generated tokens but the last.

    The settings are fields of the lane; `config` is one of them.
    """
    lane = DrivenLane(target, target.open(), prompt, **settings)
    feed_prompt(lane)
    lane.generated = generated[:1]
    for token in generated[1:]:
        submission = verify(target, (lane, ()))
        commit(target, submission.output, lane.kept(1))
        lane.generated = (*lane.generated, token)
    return lane


def verify(target: Target, *lanes: tuple[DrivenLane, Tokens]) -> Submission:
    """Submit one pass of lanes with their proposals, and wait for it."""
    submission = target.submit([lane.inputs(proposals) for lane, proposals in lanes])
    submission.completion.wait()
    return submission


def next_rows(lane: DrivenLane, *proposals: int) -> list[Row]:
    """Return the rows of a round, and leave the lane as it was."""
    submission = verify(lane.target, (lane, proposals))
    rows = lane.rows(submission.output, 0, 1 + len(proposals))
    submission.output.release()
    lane.target.restore(lane.slot, lane.base)
    return rows


def assert_same_rows(expected: Sequence[Row], actual: Sequence[Row], tolerance: float) -> None:
    """Compare rows bit for bit, or within a tolerance where the engine has one."""
    assert len(expected) == len(actual)
    for one, other in zip(expected, actual, strict=True):
        assert one == (pytest.approx(other, abs=tolerance) if tolerance else other)
