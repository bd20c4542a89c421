"""Drafts for engines with rows of logits: one that knows the answers, and one that guesses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

import numpy as np

from engines.sampling.kept import Kept
from engines.sampling.one_hot import OneHot
from service.speculation.contract import (
    DraftBlock,
    DraftRequest,
    History,
    Proposal,
    ProposerCommit,
    ProposerTraits,
    Tokens,
)

MAX_PROPOSALS = 8


class Rule(Protocol):
    """A pure function from a history to the distribution of the next proposal."""

    def distribution(self, history: History) -> Kept | OneHot | None:
        """Return the draft's distribution, None to propose no further."""


@dataclass(frozen=True, slots=True)
class Knowing:
    """Names the known next token where the pattern says so, and the id after it elsewhere.

    The pattern repeats over output positions.
    """

    answers: Mapping[Tokens, Tokens]
    pattern: tuple[bool, ...]

    def distribution(self, history: History) -> OneHot | None:
        answer, position = self.answers.get(history.prompt, ()), len(history.generated)
        if position >= len(answer):
            return None
        is_right = self.pattern[position % len(self.pattern)]
        return OneHot(answer[position] + (not is_right))


@dataclass(frozen=True, slots=True)
class Guessing:
    """Gives each of a few tokens, in ascending order, a weight that a hash of the history decides.

    It knows nothing of the target or the settings: it believes in tokens that are impossible,
    and disbelieves likely ones.
    """

    tokens: Tokens

    def distribution(self, history: History) -> Kept:
        packed = np.array((*history.prompt, *history.generated), np.uint32).tobytes()
        digest = blake2b(packed, digest_size=len(self.tokens)).digest()
        weights = np.frombuffer(digest, np.uint8).astype(np.float64) + 1.0
        return Kept.of_weights(np.array(self.tokens, np.intp), weights)


class RuledProposer:
    """Drafts by a rule, for each lane alone; remembers nothing."""

    def __init__(self, name: str, rule: Rule) -> None:
        self.traits = ProposerTraits(
            name=name,
            source=None,
            max_proposals=MAX_PROPOSALS,
            has_distribution=isinstance(rule, Guessing),
            can_branch=False,
        )
        self._rule = rule

    def open(self, slot: int, prompt: Tokens) -> None:
        """Do nothing: the history says it all."""

    def close(self, slot: int) -> None:
        """Do nothing."""

    def draft(self, requests: Sequence[DraftRequest], pass_lanes: int) -> list[DraftBlock | None]:
        del pass_lanes
        return [self._block(request) for request in requests]

    def take_timings(self) -> None:
        """Return nothing: no device drafts."""

    def commit(self, lanes: Sequence[ProposerCommit]) -> list[None]:
        return [None] * len(lanes)

    def _block(self, request: DraftRequest) -> DraftBlock | None:
        proposals: list[Proposal] = []
        generated = request.history.generated
        while len(proposals) < request.width:
            drawn = self._rule.distribution(History(request.history.prompt, generated))
            if drawn is None:
                break
            draw = None if request.randomness is None else request.randomness.at(len(generated))
            proposals.append(Proposal(drawn.sample(draw), drawn))
            generated = (*generated, proposals[-1].token)
        return DraftBlock(None, tuple(proposals)) if proposals else None
