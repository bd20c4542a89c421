"""Draft requests and commits as the core would make them."""

from __future__ import annotations

from dataclasses import dataclass

from engines.sampling.row_sampler import RowSampler
from service.generation.randomness import AddressedRandomness
from service.speculation.contract import (
    Constraint,
    DraftRequest,
    History,
    ProposerCommit,
    SamplingInput,
    Tokens,
)
from tests.contract.lanes import SAMPLED as SAMPLED_CONFIG

RANDOMNESS = AddressedRandomness(b"proposer tests")
GREEDY = RowSampler()
SAMPLED = RowSampler(temperature=1.0)


@dataclass(frozen=True, slots=True)
class Completing(RowSampler):
    """A sampler whose grammar is complete at one output."""

    complete: Tokens = ()

    def prefix_is_complete(self, generated) -> bool:
        return tuple(generated) == self.complete


def constrained(constraint: Constraint, *, config=SAMPLED_CONFIG, size: int = 11) -> RowSampler:
    """Return the sampler of a request with a constraint, whose end is token 10."""
    ends = frozenset({10})
    return RowSampler.from_input(SamplingInput(config, (), size, ends, constraint=constraint))


def draft_request(
    prompt: Tokens,
    generated: Tokens,
    width: int = 4,
    *,
    slot: int = 0,
    state: object = None,
    fixed: bool = True,
    sampler: RowSampler = GREEDY,
    ends: frozenset[int] = frozenset(),
) -> DraftRequest:
    return DraftRequest(
        slot=slot,
        seed=None,
        state=state,
        history=History(prompt, generated),
        width=width,
        fixed_width=fixed,
        sampler=sampler,
        randomness=RANDOMNESS if sampler.temperature else None,
        eos_token_ids=ends,
    )


def commit_of(
    prompt: Tokens,
    generated: Tokens,
    committed: Tokens,
    *,
    slot: int = 0,
    state: object = None,
    accepted: int = 0,
) -> ProposerCommit:
    """Return the commit whose history `generated` already ends with `committed`."""
    return ProposerCommit(slot, None, state, History(prompt, generated), committed, accepted)
