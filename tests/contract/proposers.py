"""The proposers that the contract suite runs on: one row each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from engines.onnx.passes import LaneInput
from engines.proposers.draft_model.proposer import DraftCosts, DraftModel, DraftSettings
from engines.proposers.prompt_lookup.proposer import PromptLookup
from engines.sampling.row_sampler import RowSampler
from engines.scripted.law import HashLaw, MixedLaw
from engines.scripted.model import scripted_proposer
from engines.scripted.proposer import Pace
from engines.scripted.rules import DraftRule, FollowLaw, FollowScript, FollowTarget
from engines.scripted.sampling import ScriptedSampler
from engines.scripted.vocabulary import VOCABULARY_SIZE
from service.generation.config import ResolvedGenerationConfig
from service.speculation.contract import Proposer, Sampler, SamplingInput, Tokens
from service.speculation.cost import CostCurve
from tests.contract.tiny_model import VOCABULARY, tiny_decoder

_LETTERS = tuple(range(1, 30))
_LAW = HashLaw(alphabet=_LETTERS)


@dataclass(frozen=True, slots=True)
class ProposerCase:
    """A proposer under test, and a sampler that it can draft under.

    The sampler's grammar is complete at exactly one output, if one is given.
    `always_proposes` says that a fixed width is met in full on any history,
    and `vocabulary` how many tokens its distributions are over.
    """

    name: str
    build: Callable[[], Proposer]
    sampler: Callable[[ResolvedGenerationConfig, Tokens, Tokens | None], Sampler]
    always_proposes: bool = True
    vocabulary: int = 32


@dataclass(frozen=True, slots=True)
class CompletingSampler(ScriptedSampler):
    """A scripted sampler whose grammar accepts one output, and then only the end."""

    complete: Tokens | None = None

    def prefix_is_complete(self, generated: Sequence[int]) -> bool:
        """Whether the tentative output is the one that completes the grammar."""
        return tuple(generated) == self.complete


@dataclass(frozen=True, slots=True)
class CompletingRowSampler(RowSampler):
    """The same for samplers of logits."""

    complete: Tokens | None = None

    def prefix_is_complete(self, generated: Sequence[int]) -> bool:
        """Whether the tentative output is the one that completes the grammar."""
        return tuple(generated) == self.complete


def _row_sampler(
    config: ResolvedGenerationConfig, prompt: Tokens, complete: Tokens | None
) -> Sampler:
    request = SamplingInput(config, prompt, VOCABULARY)
    return replace(CompletingRowSampler.from_input(request), complete=complete)


def _scripted_sampler(
    config: ResolvedGenerationConfig, prompt: Tokens, complete: Tokens | None
) -> Sampler:
    return CompletingSampler(SamplingInput(config, prompt, VOCABULARY_SIZE), complete=complete)


def _scripted(name: str, rule: DraftRule, pace: Pace | None = None) -> ProposerCase:
    return ProposerCase(name, lambda: scripted_proposer(name, rule, pace), _scripted_sampler)


# Rows cost nothing, so that an adaptive width is never zero for its price.
_FREE = CostCurve.from_points({(1, 1): 1.0, (1, 9): 1.0, (8, 1): 1.0, (8, 9): 1.0})


def _prompt_lookup() -> Proposer:
    return PromptLookup(_FREE)


def _draft_model() -> Proposer:
    decoder = tiny_decoder(slots=8, context=128)
    settings = DraftSettings(max_slots=8, vocabulary_size=VOCABULARY)
    return DraftModel(decoder, LaneInput, DraftCosts(_FREE, _FREE), settings)


PROPOSERS = (
    ProposerCase("prompt-lookup", _prompt_lookup, _row_sampler, always_proposes=False),
    ProposerCase("draft-model", _draft_model, _row_sampler, vocabulary=VOCABULARY),
    _scripted("scripted-right", FollowTarget(_LAW)),
    _scripted("scripted-wrong", FollowTarget(_LAW, (False,))),
    _scripted("scripted-pattern", FollowTarget(_LAW, (True, True, False))),
    _scripted("scripted-own-law", FollowLaw(MixedLaw(_LAW, HashLaw(_LETTERS, key=b"draft")))),
    _scripted("scripted-script", FollowScript(tuple(1 + place % 30 for place in range(99)))),
    _scripted("scripted-widths", FollowTarget(_LAW), Pace(widths=(4, 0, 2, 1))),
)
