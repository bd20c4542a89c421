"""Counter-based randomness: the same seed gives the same draws, whatever was discarded.

Target draws are a sequential stream whose state is a counter; the draft's draws and the coins
of XTC are addressed by absolute output position. Nothing needs cloning or rewinding.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from hashlib import blake2b

_MANTISSA_BITS = 53
_SHIFT = 64 - _MANTISSA_BITS
SEED_BITS = 64


def _uniform(key: bytes, counter: int) -> float:
    """Return one uniform in [0, 1) with 53 random bits."""
    digest = blake2b(counter.to_bytes(8, "little"), digest_size=8, key=key).digest()
    return float(int.from_bytes(digest, "little") >> _SHIFT) * 2.0**-_MANTISSA_BITS


@dataclass(frozen=True, slots=True)
class RandomStream:
    """A sequential stream; `draws` counts what was taken from it."""

    key: bytes
    draws: int = 0

    def draw(self) -> tuple[float, RandomStream]:
        """Return one uniform in [0, 1) and the stream after it."""
        return _uniform(self.key, self.draws), RandomStream(self.key, self.draws + 1)


@dataclass(frozen=True, slots=True)
class AddressedRandomness:
    """Draws addressed by absolute output position."""

    key: bytes

    def at(self, position: int) -> float:
        """Return the uniform in [0, 1) of one zero-based output position."""
        return _uniform(self.key, position)


@dataclass(frozen=True, slots=True)
class Randomness:
    """All draws of one request; None where temperature zero draws nothing.

    `coins` shape the distribution itself (XTC), so target and draft share them.
    """

    target: RandomStream | None
    draft: AddressedRandomness | None
    coins: AddressedRandomness | None = None


def fresh_seed() -> int:
    """Return an unpredictable 64-bit seed for a request that gave none."""
    return secrets.randbits(SEED_BITS)


def randomness_from_seed(seed: int, temperature: float) -> Randomness:
    """Split one root into the target's stream, the draft's draws and the coins.

    Zero is a real seed. Temperature zero yields no streams at all.
    """
    if temperature == 0.0:
        return Randomness(None, None)
    root = seed.to_bytes(8, "little")
    target = blake2b(b"outrider target", key=root).digest()
    draft = blake2b(b"outrider draft", key=root).digest()
    coins = blake2b(b"outrider coins", key=root).digest()
    return Randomness(RandomStream(target), AddressedRandomness(draft), AddressedRandomness(coins))
