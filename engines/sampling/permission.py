"""Which tokens a request's settings and its constraint let follow, at one place of the output."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engines.sampling.following import Following
from engines.sampling.logits import Row, known
from service.errors import InvalidLogits, NothingAllowed, OutriderError
from service.generation.config import ResolvedGenerationConfig
from service.speculation.contract import Constraint, History, SamplingInput

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Ban:
    """What one field of the request forbids: True for each forbidden id, `[vocabulary]`."""

    field: str
    forbidden: Mask

    @classmethod
    def of(cls, field: str, ids: Iterable[int], vocabulary: int) -> Ban:
        """Forbid some ids; those beyond the vocabulary are anyway."""
        forbidden = np.zeros(vocabulary, np.bool_)
        forbidden[known(tuple(ids), vocabulary)] = True
        return cls(field, forbidden)

    @classmethod
    def of_others(cls, field: str, ids: Iterable[int], vocabulary: int) -> Ban:
        """Forbid all ids but some."""
        return cls(field, ~cls.of(field, ids, vocabulary).forbidden)

    @classmethod
    def of_constraint(cls, constraint: Constraint, vocabulary: int) -> Ban:
        """Forbid what a constraint does not permit, and the ids beyond its mask."""
        # Padded here: of no bytes at all, unpackbits would return uninitialised memory.
        bits = np.frombuffer(constraint.mask().ljust((vocabulary + 7) // 8, b"\0"), np.uint8)
        permitted = np.unpackbits(bits, count=vocabulary, bitorder="little")
        return cls(constraint.field, permitted == 0)


@dataclass(frozen=True, slots=True)
class Permission:
    """Everything that forbids tokens; the default forbids none.

    Ids from `vocabulary` on are padding; None says that there is none. `bans` hold at every
    place, and `early` at the first `early_tokens`.
    """

    vocabulary: int | None = None
    bans: tuple[Ban, ...] = ()
    early: Ban | None = None
    early_tokens: int = 0
    following: Following | None = None

    @classmethod
    def of(cls, request: SamplingInput) -> Permission:
        """Take over what a request forbids."""
        vocabulary, ends, constraint = (
            request.vocabulary_size,
            request.end_token_ids,
            request.constraint,
        )
        early_tokens = request.config.min_new_tokens if ends else 0
        early = Ban.of("settings.min_new_tokens", ends, vocabulary) if early_tokens else None
        return cls(
            vocabulary=vocabulary,
            bans=tuple(_fixed_bans(request.config, vocabulary)),
            early=early,
            early_tokens=early_tokens,
            following=Following(constraint, ends) if constraint is not None else None,
        )

    @property
    def is_unrestricted(self) -> bool:
        """Whether no token is ever forbidden."""
        return not self.bans and self.early is None and self.following is None

    def apply(self, row: Row, history: History) -> Row:
        """Return the logits `[vocabulary]` with all that is forbidden at minus infinity.

        The given row, which may have a padded tail, is not modified.
        """
        row = row[: self.vocabulary]
        bans = self._bans(history.generated, row.size)
        if not bans:
            return row
        masked = row.copy()
        for ban in bans:
            np.copyto(masked, -np.inf, where=ban.forbidden[: row.size])
        return masked

    def refusal(self, row: Row, history: History) -> OutriderError:
        """Return why no token of logits `[vocabulary]` can be chosen.

        That is the row itself where the request forbids nothing or the row holds no finite
        maximum before, and otherwise fields that forbid everything only together.
        """
        row = row[: self.vocabulary]
        peak = float(row.max())
        bans = self._bans(history.generated, row.size)
        if not bans or not np.isfinite(peak):
            return InvalidLogits(peak)
        fields = tuple(ban.field for ban in _needed(bans, row > -np.inf))
        return NothingAllowed(len(history.generated), fields)

    def permits(self, generated: Sequence[int], token: int) -> bool:
        """Whether a token may follow an output, without a mask of the constraint."""
        if self.vocabulary is not None and token >= self.vocabulary:
            return False
        if any(ban.forbidden[token] for ban in self._fixed(len(generated))):
            return False
        return self.following is None or self.following.at(generated).permits(token)

    def is_complete(self, generated: Sequence[int]) -> bool:
        """Whether a constraint is met by an output, and nothing but its end may follow."""
        return self.following is not None and self.following.at(generated).is_complete()

    def after(self, token: int) -> Permission:
        """Return the state after one more token of the output."""
        if self.following is None:
            return self
        return replace(self, following=self.following.after(token))

    def _fixed(self, position: int) -> tuple[Ban, ...]:
        if self.early is None or position >= self.early_tokens:
            return self.bans
        return (*self.bans, self.early)

    def _bans(self, generated: Sequence[int], vocabulary: int) -> tuple[Ban, ...]:
        fixed = self._fixed(len(generated))
        if self.following is None:
            return fixed
        return (Ban.of_constraint(self.following.at(generated), vocabulary), *fixed)


UNRESTRICTED = Permission()


def _fixed_bans(config: ResolvedGenerationConfig, vocabulary: int) -> Iterator[Ban]:
    if config.allowed_token_ids is not None:
        yield Ban.of_others("settings.allowed_token_ids", config.allowed_token_ids, vocabulary)
    if config.banned_token_ids:
        yield Ban.of("settings.banned_token_ids", config.banned_token_ids, vocabulary)


def _needed(bans: Sequence[Ban], possible: Mask) -> list[Ban]:
    """Leave out each ban without which the others still forbid all that is possible.

    The last are left out first, so that a constraint is named before a setting.
    """
    needed = list(bans)
    for ban in reversed(bans):
        others = [other for other in needed if other is not ban]
        if not _remaining(others, possible).any():
            needed = others
    return needed


def _remaining(bans: Sequence[Ban], possible: Mask) -> Mask:
    remaining = possible.copy()
    for ban in bans:
        remaining &= ~ban.forbidden[: possible.size]
    return remaining
