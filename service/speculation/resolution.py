"""Resolve one lane of a completed pass on copies: what to commit, publish and install."""

from __future__ import annotations

from dataclasses import dataclass

from service.generation.sequence import GenerationSequence, TerminalSignals, TokenCommit
from service.speculation.contract import (
    Distribution,
    DraftBlock,
    Sampler,
    TargetRows,
)
from service.speculation.policy import Accept, Stream, choose, judge
from service.speculation.publication import RoundTokens, TextState
from service.speculation.round import SpeculativeRound, TokenSource


@dataclass(frozen=True, slots=True)
class OutputState:
    """A lane's logical state: installed whole, in one assignment."""

    sampler: Sampler
    sequence: GenerationSequence
    text: TextState
    stream: Stream


@dataclass(frozen=True, slots=True)
class ResolvedLane:
    """A resolved lane before its cache commit; `bonus` follows full acceptance."""

    state: OutputState
    committed: RoundTokens
    verified_inputs: int
    bonus: int | None = None


class _Tentative:
    """Copies of a lane's state that advance token by token."""

    def __init__(self, state: OutputState) -> None:
        self.sampler = state.sampler
        self.sequence = state.sequence
        self.text = state.text.fork()
        self.stream = state.stream
        self.commits: list[TokenCommit] = []

    def commit(self, distribution: Distribution, token: int) -> bool:
        """Commit one token of a target row; return whether it ends the output."""
        self.sampler = self.sampler.advance(distribution, token)
        stop = self.text.push_token(token)
        complete = stop is None and self.sampler.grammar_is_complete()
        signals = TerminalSignals(stop, complete)
        self.sequence, commit = self.sequence.commit(token, signals)
        self.commits.append(commit)
        if commit.finish_reason is not None:
            self.text.finish(commit.finish_reason)
        return commit.finish_reason is not None

    def state(self) -> OutputState:
        """Return the advanced state as one value."""
        return OutputState(self.sampler, self.sequence, self.text, self.stream)


def resolve_block(rows: TargetRows, block: DraftBlock, state: OutputState) -> ResolvedLane:
    """Judge a block row by row, up to the first rejection or terminal token.

    Raises:
        OutriderError: a row or the text state failed; `state` is unchanged.
    """
    tentative = _Tentative(state)
    round_ = SpeculativeRound(len(block.proposals))
    for row, proposal in enumerate(block.proposals):
        target = rows.distribution(row, tentative.sampler)
        decision, tentative.stream = judge(target, proposal, tentative.stream)
        if isinstance(decision, Accept):
            ends = tentative.commit(target, proposal.token)
            round_ = round_.accept(proposal.token, terminal=ends)
            if ends:
                break
        else:
            ends = tentative.commit(target, decision.replacement)
            round_ = round_.reject_with(decision.replacement, terminal=ends)
            break
    bonus = None
    if round_.is_full_acceptance and not round_.terminal:
        target = rows.distribution(len(block.proposals), tentative.sampler)
        bonus, tentative.stream = choose(target, tentative.stream)
        round_ = round_.bonus(bonus, terminal=tentative.commit(target, bonus))
    plan = round_.plan()
    judged = plan.accepted + (TokenSource.REPLACEMENT in plan.sources)
    committed = RoundTokens(tuple(tentative.commits), plan.sources, judged, plan.accepted)
    return ResolvedLane(tentative.state(), committed, plan.verified_inputs, bonus)


def resolve_single(
    rows: TargetRows, state: OutputState, source: TokenSource, inputs: int
) -> ResolvedLane:
    """Take one token from one row: a plain step, or the end of a prefill of `inputs` tokens."""
    tentative = _Tentative(state)
    target = rows.distribution(0, tentative.sampler)
    token, tentative.stream = choose(target, tentative.stream)
    tentative.commit(target, token)
    committed = RoundTokens(tuple(tentative.commits), (source,))
    return ResolvedLane(tentative.state(), committed, inputs)
