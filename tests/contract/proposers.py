"""The proposers that the contract suite runs on: one row each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engines.scripted.law import HashLaw, MixedLaw
from engines.scripted.model import scripted_proposer
from engines.scripted.proposer import Pace
from engines.scripted.rules import DraftRule, FollowLaw, FollowScript, FollowTarget
from engines.scripted.sampling import ScriptedSampler
from service.generation.config import ResolvedGenerationConfig
from service.speculation.contract import Proposer, Sampler, Tokens

VOCABULARY = 32
_LETTERS = tuple(range(1, VOCABULARY - 2))
_LAW = HashLaw(alphabet=_LETTERS)


@dataclass(frozen=True, slots=True)
class ProposerCase:
    """A proposer under test, and a sampler that it can draft under.

    The sampler's grammar is complete at exactly one output, if one is given.
    `always_proposes` says that a fixed width is met in full on any history.
    """

    name: str
    build: Callable[[], Proposer]
    sampler: Callable[[ResolvedGenerationConfig, Tokens, Tokens | None], Sampler]
    always_proposes: bool = True


@dataclass(frozen=True, slots=True)
class CompletingSampler(ScriptedSampler):
    """A scripted sampler whose grammar accepts one output, and then only the end."""

    complete: Tokens | None = None

    def prefix_is_complete(self, generated: Sequence[int]) -> bool:
        """Whether the tentative output is the one that completes the grammar."""
        return tuple(generated) == self.complete


def _scripted_sampler(
    config: ResolvedGenerationConfig, prompt: Tokens, complete: Tokens | None
) -> Sampler:
    del prompt
    return CompletingSampler(config, complete)


def _scripted(name: str, rule: DraftRule, pace: Pace | None = None) -> ProposerCase:
    return ProposerCase(name, lambda: scripted_proposer(name, rule, pace), _scripted_sampler)


PROPOSERS = (
    _scripted("scripted-right", FollowTarget(_LAW)),
    _scripted("scripted-wrong", FollowTarget(_LAW, (False,))),
    _scripted("scripted-pattern", FollowTarget(_LAW, (True, True, False))),
    _scripted("scripted-own-law", FollowLaw(MixedLaw(_LAW, HashLaw(_LETTERS, key=b"draft")))),
    _scripted("scripted-script", FollowScript(tuple(1 + place % 30 for place in range(99)))),
    _scripted("scripted-widths", FollowTarget(_LAW), Pace(widths=(4, 0, 2, 1))),
)
