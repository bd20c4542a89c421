"""Resolve one lane of a completed pass on copies: what to commit, publish and install."""

from __future__ import annotations

from dataclasses import dataclass

from service.errors import RequestError, SemanticError
from service.generation.sequence import GenerationSequence, TerminalSignals, TokenCommit
from service.speculation.contract import (
    Distribution,
    DraftBlock,
    Sampler,
    TargetRows,
    TokenLogprob,
)
from service.speculation.policy import Accept, Stream, choose, judge
from service.speculation.publication import RoundTokens, TextState
from service.speculation.round import SpeculativeRound, TokenSource


@dataclass(frozen=True, slots=True)
class OutputState:
    """A lane's logical state: installed whole, in one assignment.

    `alternatives` is how many each committed token's log-probability comes with, None where
    none is wanted.
    """

    sampler: Sampler
    sequence: GenerationSequence
    text: TextState
    stream: Stream
    alternatives: int | None = None


@dataclass(frozen=True, slots=True)
class ResolvedLane:
    """A resolved lane before its cache commit; `bonus` follows full acceptance."""

    state: OutputState
    committed: RoundTokens
    verified_inputs: int
    bonus: int | None = None


@dataclass(frozen=True, slots=True)
class LastRow:
    """The row after a prompt, where its chunk has a row for each of its tokens."""

    rows: TargetRows
    last: int

    def distribution(self, row: int, sampler: Sampler) -> Distribution:
        return self.rows.distribution(self.last + row, sampler)

    def logprob(self, row: int, sampler: Sampler, token: int, alternatives: int) -> TokenLogprob:
        return self.rows.logprob(self.last + row, sampler, token, alternatives)

    def raw_logprob(self, row: int, token: int, alternatives: int) -> TokenLogprob:
        return self.rows.raw_logprob(self.last + row, token, alternatives)


class _Tentative:
    """Copies of a lane's state that advance token by token, over the rows of one pass."""

    def __init__(self, rows: TargetRows, state: OutputState) -> None:
        self.rows = rows
        self.alternatives = state.alternatives
        self.logprobs: list[TokenLogprob] = []
        self.sampler = state.sampler
        self.sequence = state.sequence
        self.text = state.text.fork()
        self.stream = state.stream
        self.commits: list[TokenCommit] = []

    def target(self) -> Distribution:
        """Return the target's distribution at the next position."""
        return self.rows.distribution(len(self.commits), self.sampler)

    def commit(self, distribution: Distribution, token: int) -> bool:
        """Commit one token of the next row; return whether it ends the output."""
        if self.alternatives is not None:
            row = len(self.commits)
            scored = self.rows.logprob(row, self.sampler, token, self.alternatives)
            self.logprobs.append(scored)
        self.sampler = self.sampler.advance(distribution, token)
        stop = self.text.push_token(token)
        complete = stop is None and self.sampler.grammar_is_complete()
        signals = TerminalSignals(stop, complete)
        self.sequence, commit = self.sequence.commit(token, signals)
        if commit.finish_reason is not None:
            self.text.finish(commit.finish_reason)
        self.commits.append(commit)
        return commit.finish_reason is not None

    def state(self) -> OutputState:
        """Return the advanced state as one value."""
        return OutputState(self.sampler, self.sequence, self.text, self.stream, self.alternatives)


def resolve_block(rows: TargetRows, block: DraftBlock, state: OutputState) -> ResolvedLane:
    """Judge a block row by row, up to the first rejection or terminal token.

    Where the request's own settings or its output's syntax allow no step behind accepted proposals,
    the round ends with these, as plain decoding would have delivered them; the next round meets the
    fault at its first row.

    Raises:
        OutriderError: a row or the text state failed; `state` is unchanged.
    """
    tentative = _Tentative(rows, state)
    try:
        return _resolve(tentative, block)
    except (RequestError, SemanticError):
        certain = len(tentative.commits)
        if not certain:
            raise
        return _resolve(_Tentative(rows, state), block, certain)


def _resolve(tentative: _Tentative, block: DraftBlock, certain: int | None = None) -> ResolvedLane:
    """Judge a block, or only its first `certain` proposals, which are known to be accepted."""
    round_ = SpeculativeRound(len(block.proposals))
    for proposal in block.proposals[:certain]:
        target = tentative.target()
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
    if certain is not None:
        round_ = round_.cut()
    elif round_.is_full_acceptance and not round_.terminal:
        target = tentative.target()
        bonus, tentative.stream = choose(target, tentative.stream)
        round_ = round_.bonus(bonus, terminal=tentative.commit(target, bonus))
    plan = round_.plan()
    judged = plan.accepted + (TokenSource.REPLACEMENT in plan.sources)
    committed = RoundTokens(
        tokens=tuple(tentative.commits),
        sources=plan.sources,
        judged=judged,
        accepted=plan.accepted,
        logprobs=tuple(tentative.logprobs),
    )
    return ResolvedLane(tentative.state(), committed, plan.verified_inputs, bonus)


def resolve_single(
    rows: TargetRows, state: OutputState, source: TokenSource, inputs: int
) -> ResolvedLane:
    """Take one token from one row: a plain step, or the end of a prefill of `inputs` tokens."""
    tentative = _Tentative(rows, state)
    target = tentative.target()
    token, tentative.stream = choose(target, tentative.stream)
    tentative.commit(target, token)
    committed = RoundTokens(tuple(tentative.commits), (source,), logprobs=tuple(tentative.logprobs))
    return ResolvedLane(tentative.state(), committed, inputs)
