"""The distribution with all mass on one token: greedy rows, and drafts without weights."""

from __future__ import annotations

from dataclasses import dataclass

from service.speculation.contract import Distribution


@dataclass(frozen=True, slots=True)
class OneHot:
    """Certainty of one token; sampling it draws nothing."""

    token: int

    def probability(self, token: int) -> float:
        return 1.0 if token == self.token else 0.0

    def sample(self, draw: float | None) -> int:
        del draw
        return self.token

    def excess_over(self, draft: Distribution) -> OneHot | None:
        return self if draft.probability(self.token) < 1.0 else None
