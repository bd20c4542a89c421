"""Bookkeeping of one round: accept, reject, bonus, and what to keep of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from service.errors import EmptyProposalBlock, IncompleteRound, InvalidRoundTransition
from service.speculation.contract import Tokens


class Tail(Enum):
    """The token after the accepted proposals, drawn from the target."""

    REPLACEMENT = "replacement"
    BONUS = "bonus"


class TokenSource(Enum):
    """Where a committed token came from."""

    PREFILL = "prefill"
    ACCEPTED = "accepted"
    REPLACEMENT = "replacement"
    BONUS = "bonus"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class CommitPlan:
    """What a resolved round publishes, and how many of its inputs the cache keeps.

    A tail is emitted but not cached: the kept inputs are the leading one and
    the accepted proposals; without a tail the last accepted proposal is the
    uncached one.
    """

    accepted: int
    committed: Tokens
    verified_inputs: int
    full_acceptance: bool
    tail: Tail | None
    terminal: bool

    @property
    def sources(self) -> tuple[TokenSource, ...]:
        """Return the source of each committed token."""
        tail = () if self.tail is None else (TokenSource(self.tail.value),)
        return (TokenSource.ACCEPTED,) * self.accepted + tail


@dataclass(frozen=True, slots=True)
class SpeculativeRound:
    """One block under judgement; every step is a new value.

    Source: eredu-core, `SpeculativeRound`.
    """

    proposal_count: int
    accepted: int = 0
    committed: Tokens = ()
    tail: Tail | None = None
    terminal: bool = False
    is_cut: bool = False

    def __post_init__(self) -> None:
        """Refuse a round without proposals."""
        if self.proposal_count <= 0:
            raise EmptyProposalBlock

    @property
    def is_full_acceptance(self) -> bool:
        """Whether every proposal was accepted."""
        return self.accepted == self.proposal_count

    def accept(self, token: int, *, terminal: bool = False) -> SpeculativeRound:
        """Accept the next proposal."""
        self._require_open(tail_of_full_block=False)
        return replace(
            self,
            accepted=self.accepted + 1,
            committed=(*self.committed, token),
            terminal=terminal,
        )

    def reject_with(self, token: int, *, terminal: bool = False) -> SpeculativeRound:
        """Replace the next proposal by a token of the target."""
        self._require_open(tail_of_full_block=False)
        return self._with_tail(Tail.REPLACEMENT, token, terminal=terminal)

    def bonus(self, token: int, *, terminal: bool = False) -> SpeculativeRound:
        """Add the target's token after a fully accepted block."""
        self._require_open(tail_of_full_block=True)
        return self._with_tail(Tail.BONUS, token, terminal=terminal)

    def cut(self) -> SpeculativeRound:
        """End the round after the accepted proposals, at least one: no more could be judged."""
        if not self.accepted or self._is_resolved:
            raise InvalidRoundTransition
        return replace(self, is_cut=True)

    def plan(self) -> CommitPlan:
        """Return what to commit and publish.

        Raises:
            IncompleteRound: neither a tail, a terminal token nor a cut resolved the round.
        """
        if not self._is_resolved:
            raise IncompleteRound
        return CommitPlan(
            accepted=self.accepted,
            committed=self.committed,
            verified_inputs=self.accepted + (self.tail is not None),
            full_acceptance=self.is_full_acceptance,
            tail=self.tail,
            terminal=self.terminal,
        )

    @property
    def _is_resolved(self) -> bool:
        return self.tail is not None or self.terminal or self.is_cut

    def _require_open(self, *, tail_of_full_block: bool) -> None:
        if self._is_resolved or self.is_full_acceptance is not tail_of_full_block:
            raise InvalidRoundTransition

    def _with_tail(self, tail: Tail, token: int, *, terminal: bool) -> SpeculativeRound:
        return replace(self, committed=(*self.committed, token), tail=tail, terminal=terminal)
