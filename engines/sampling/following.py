"""A constraint beside an output: where it stands, and where it would stand further on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from service.speculation.contract import Constraint


@dataclass(frozen=True, slots=True)
class Following:
    """A constraint that has followed the first `tokens` tokens of an output.

    Tokens in `ends` end the output and are no part of what the constraint describes.
    """

    constraint: Constraint
    ends: frozenset[int] = frozenset()
    tokens: int = 0

    def after(self, token: int) -> Following:
        """Return the state after one more token of the output."""
        return replace(self, constraint=self._next(self.constraint, token), tokens=self.tokens + 1)

    def at(self, generated: Sequence[int]) -> Constraint:
        """Return the constraint after an output that begins with what was followed."""
        state = self.constraint
        for token in generated[self.tokens :]:
            state = self._next(state, token)
        return state

    def prefetch(self, generated: Sequence[int], proposals: Sequence[int]) -> None:
        """Let the masks of a block's rows be computed, as far as the block can be accepted."""
        state = self.at(generated)
        state.prefetch()
        for token in proposals:
            if token in self.ends or not state.permits(token):
                break
            state = state.after(token)
            state.prefetch()

    def _next(self, state: Constraint, token: int) -> Constraint:
        return state if token in self.ends else state.after(token)
