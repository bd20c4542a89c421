"""What scripted proposers believe: the draft distribution of the token after a history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from engines.scripted.distribution import SparseDistribution, certain
from engines.scripted.law import Law
from engines.scripted.sampling import ScriptedSampler
from engines.scripted.vocabulary import VOCABULARY_SIZE
from service.speculation.contract import History


class DraftRule(Protocol):
    """A pure function of the history; the position drafted for is the output's length."""

    def distribution(self, history: History, sampler: ScriptedSampler) -> SparseDistribution | None:
        """Return the draft distribution of the next token, None to propose no further."""


@dataclass(frozen=True, slots=True)
class FollowTarget:
    """Name the target's likeliest token where the pattern says so, and a wrong one elsewhere.

    The pattern repeats over output positions: `(True,)` is always right,
    `(False,)` always wrong, `(True, True, False)` wrong at every third.
    """

    law: Law
    pattern: tuple[bool, ...] = (True,)

    def distribution(self, history: History, sampler: ScriptedSampler) -> SparseDistribution | None:
        """Return a certain token."""
        row = sampler.process(self.law.logits((*history.prompt, *history.generated)), history)
        right = row.sample(None)
        is_right = self.pattern[len(history.generated) % len(self.pattern)]
        return certain(right if is_right else (right + 1) % VOCABULARY_SIZE)


@dataclass(frozen=True, slots=True)
class FollowLaw:
    """Draw from a law of the draft's own, processed like the target's rows."""

    law: Law

    def distribution(self, history: History, sampler: ScriptedSampler) -> SparseDistribution | None:
        """Return the processed distribution of the draft's law."""
        return sampler.process(self.law.logits((*history.prompt, *history.generated)), history)


@dataclass(frozen=True, slots=True)
class FollowScript:
    """Name fixed tokens by output position, None where nothing is to be proposed."""

    tokens: tuple[int | None, ...]

    def distribution(self, history: History, sampler: ScriptedSampler) -> SparseDistribution | None:
        """Return the scripted token, none behind the script's end."""
        del sampler
        position = len(history.generated)
        token = self.tokens[position] if position < len(self.tokens) else None
        return None if token is None else certain(token)
