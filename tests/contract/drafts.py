"""Proposer lanes driven by hand: what the core would do, one call at a time."""

from __future__ import annotations

from dataclasses import dataclass, field

from service.generation.config import ResolvedGenerationConfig
from service.generation.randomness import AddressedRandomness
from service.speculation.contract import (
    DraftBlock,
    DraftRequest,
    History,
    Proposer,
    ProposerCommit,
    Tokens,
)
from tests.contract.proposers import ProposerCase
from tests.neutral import SAMPLED

# Repetitive, so that a lookup finds something to copy.
PROMPT = (1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3)
FIRST = 4
RANDOMNESS = AddressedRandomness(b"contract suite")
# No vocabulary has it.
END = 999


@dataclass(slots=True)
class DraftLane:
    """One open lane of a proposer, and the output that was committed to it."""

    case: ProposerCase
    proposer: Proposer
    slot: int = 0
    prompt: Tokens = PROMPT
    generated: Tokens = ()
    config: ResolvedGenerationConfig = field(default=SAMPLED)

    def request(
        self,
        width: int = 4,
        *,
        after: DraftBlock | None = None,
        is_fixed: bool = True,
        end: int = END,
        complete: Tokens | None = None,
    ) -> DraftRequest:
        """Return a request to draft from the committed output, or on from a block."""
        assumed = () if after is None else after.tokens
        return DraftRequest(
            slot=self.slot,
            seed=None,
            state=None if after is None else after.state,
            history=History(self.prompt, (*self.generated, *assumed)),
            width=width,
            fixed_width=is_fixed,
            sampler=self.case.sampler(self.config, self.prompt, complete),
            randomness=RANDOMNESS if self.config.temperature else None,
            eos_token_ids=frozenset({end}),
        )

    def content(self, drawn):
        """Return the tokens of a block and their draft probabilities; None as it is."""
        if drawn is None:
            return None
        assert isinstance(drawn, DraftBlock)
        tokens = range(self.case.vocabulary)
        return [
            (one.token, [one.distribution.probability(token) for token in tokens])
            for one in drawn.proposals
        ]

    def draft(self, request: DraftRequest | None = None, pass_lanes: int = 1):
        """Draft one lane alone."""
        (drawn,) = self.proposer.draft([request or self.request()], pass_lanes)
        return drawn

    def settled(
        self, *committed: int, block: DraftBlock | None = None, accepted: int = 0
    ) -> ProposerCommit:
        """Return the commit of a round, and count its tokens as generated."""
        self.generated = (*self.generated, *committed)
        state = None if block is None else block.state
        history = History(self.prompt, self.generated)
        return ProposerCommit(self.slot, None, state, history, committed, accepted)

    def settle(self, *committed: int, block: DraftBlock | None = None, accepted: int = 0) -> None:
        """Let the proposer follow one round, and expect it to succeed."""
        outcome = self.proposer.commit([self.settled(*committed, block=block, accepted=accepted)])
        assert [None] == list(outcome)


def open_draft(case: ProposerCase, proposer: Proposer, slot: int = 0, **lane) -> DraftLane:
    """Open a lane behind its prefill."""
    opened = DraftLane(case, proposer, slot, **lane)
    proposer.open(slot, opened.prompt)
    opened.settle(FIRST)
    return opened


def replayed(lane: DraftLane) -> DraftLane:
    """Return the lane of a new proposer that came to the same history by plain steps."""
    fresh = DraftLane(lane.case, lane.case.build(), 0, lane.prompt, config=lane.config)
    fresh.proposer.open(0, fresh.prompt)
    for token in lane.generated:
        fresh.settle(token)
    return fresh
