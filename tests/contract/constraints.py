"""Constraints to test with: which tokens may follow is easy to say beforehand."""

from __future__ import annotations

from dataclasses import dataclass, replace

from service.speculation.contract import Tokens


def bits(tokens: frozenset[int]) -> bytes:
    """Return the mask that permits these tokens, no longer than it has to be."""
    number = sum(1 << token for token in tokens)
    return number.to_bytes((number.bit_length() + 7) // 8, "little")


@dataclass(frozen=True, slots=True)
class Outputs:
    """Permits the given outputs, each ended by the end token."""

    outputs: tuple[Tokens, ...]
    end: int
    so_far: Tokens = ()
    field: str = "settings.constraint"

    def after(self, token: int) -> Outputs:
        return replace(self, so_far=(*self.so_far, token))

    def permits(self, token: int) -> bool:
        return token in self._following()

    def mask(self) -> bytes:
        return bits(self._following())

    def prefetch(self) -> None:
        return None

    def is_complete(self) -> bool:
        return self.so_far in self.outputs and self._following() == {self.end}

    def _following(self) -> frozenset[int]:
        length = len(self.so_far)
        fitting = [(*each, self.end) for each in self.outputs if each[:length] == self.so_far]
        return frozenset(each[length] for each in fitting if len(each) > length)


@dataclass(frozen=True, slots=True)
class Stripes:
    """Permits every second of the lowest tokens; which of them depends on all tokens before."""

    width: int = 200
    shift: int = 0
    is_dead: bool = False
    field: str = "chat.tools"

    def after(self, token: int) -> Stripes:
        dead = not self.permits(token)
        return replace(self, shift=(5 * self.shift + token) // 2, is_dead=dead)

    def permits(self, token: int) -> bool:
        return not self.is_dead and token < self.width and (token + self.shift) % 2 == 0

    def mask(self) -> bytes:
        return bits(self.permitted())

    def prefetch(self) -> None:
        return None

    def is_complete(self) -> bool:
        return False

    def permitted(self) -> frozenset[int]:
        """Return all tokens that may follow."""
        return frozenset(filter(self.permits, range(self.width)))

    def walk(self, *steps: int) -> Tokens:
        """Return tokens that may follow one another: each the next permitted one from a step."""
        tokens, state = [], self
        for step in steps:
            tokens.append(step if state.permits(step) else step + 1)
            state = state.after(tokens[-1])
        return tuple(tokens)
