"""A model under test: what it is asked, and how time passes for it."""

from __future__ import annotations

from dataclasses import dataclass

from engines.scripted.clock import ManualClock
from outrider.v1.generation_pb2 import Generation, TokenIds
from outrider.v1.settings_pb2 import SPECULATION_MODE_NONE, GenerationSettings, SpeculationSettings
from service.runtime.models import LoadedModel
from service.speculation.contract import Tokens

PLAIN = SpeculationSettings(mode=SPECULATION_MODE_NONE)


@dataclass(frozen=True, slots=True)
class Subject:
    """A loaded model with its proposers, and prompts for it.

    `alphabet` are few tokens that are likely somewhere; sampled output is confined to them unless
    it `is_small`, a model with hardly any other. `clock` is that of an engine whose passes take
    time; without one they have ended when they were submitted.
    """

    name: str
    model: LoadedModel
    prompts: tuple[Tokens, ...]
    alphabet: Tokens
    clock: ManualClock | None = None
    is_small: bool = False

    @property
    def proposers(self) -> tuple[str, ...]:
        """Return the names of the loaded proposers."""
        return tuple(proposer.name for proposer in self.model.proposers)

    @property
    def can_overlap(self) -> bool:
        """Whether drafting may go on while the target verifies."""
        return self.model.target.limits.can_overlap_drafting


def generation(
    prompt: Tokens, settings: GenerationSettings, speculation: SpeculationSettings = PLAIN
) -> Generation:
    """Return a request as a client sends it."""
    return Generation(token_ids=TokenIds(ids=prompt), settings=settings, speculation=speculation)


def drafted(proposer: str, width: int, *, lookahead: bool = True) -> SpeculationSettings:
    """Return how to ask for one proposer and the most that it may propose."""
    return SpeculationSettings(proposer=proposer, num_speculative_tokens=width, lookahead=lookahead)
