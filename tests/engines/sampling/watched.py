"""A constraint that says what was asked of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from service.speculation.contract import Constraint, Tokens


@dataclass
class Log:
    """The tokens after which a mask was computed, or was to be computed ahead."""

    masks: list[Tokens] = field(default_factory=list)
    prefetches: list[Tokens] = field(default_factory=list)


@dataclass(frozen=True)
class Watched:
    """Another constraint, and the tokens that it was walked along."""

    inner: Constraint
    log: Log = field(default_factory=Log)
    walked: Tokens = ()

    @property
    def field(self) -> str:
        return self.inner.field

    def after(self, token: int) -> Watched:
        return replace(self, inner=self.inner.after(token), walked=(*self.walked, token))

    def permits(self, token: int) -> bool:
        return self.inner.permits(token)

    def mask(self) -> bytes:
        self.log.masks.append(self.walked)
        return self.inner.mask()

    def prefetch(self) -> None:
        self.log.prefetches.append(self.walked)

    def is_complete(self) -> bool:
        return self.inner.is_complete()
