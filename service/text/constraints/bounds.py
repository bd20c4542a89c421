"""What holds at every place of one output, and the places after which nothing follows."""

from __future__ import annotations

from dataclasses import dataclass

from service.errors import ConstraintFailed


@dataclass(frozen=True, slots=True)
class Bounds:
    """What holds at every place of one output.

    `size` is the number of the tokenizer's ids. What is `reserved` is no part of the output; of
    that, `ends` may end it where the grammar accepts.
    """

    field: str
    size: int
    ends: frozenset[int]
    reserved: frozenset[int]

    @property
    def mask_bytes(self) -> int:
        """Return the length of a mask: it reaches every id and every end."""
        return -(-max(self.size, *(end + 1 for end in self.ends), 1) // 8)

    def without_ends(self, bits: bytes) -> bytearray:
        """Return a matcher's bits, those that are reserved cleared."""
        mask = bytearray(bits[: self.mask_bytes].ljust(self.mask_bytes, b"\0"))
        for token in self.reserved:
            if token // 8 < len(mask):
                mask[token // 8] &= ~(1 << token % 8)
        return mask

    def with_ends(self, mask: bytearray) -> bytes:
        """Return a mask with the ends set."""
        for token in self.ends:
            mask[token // 8] |= 1 << token % 8
        return bytes(mask)

    def failure(self) -> ConstraintFailed:
        """Return the error of a mask that cannot be computed."""
        return ConstraintFailed(self.field, "cannot be followed further within its limits")


@dataclass(frozen=True, slots=True)
class Closed:
    """After what may not follow, and after the end: nothing follows.

    With `failed`, it could not be told what may.
    """

    bounds: Bounds
    failed: bool = False

    @property
    def field(self) -> str:
        return self.bounds.field

    def after(self, token: int) -> Closed:
        del token
        return self

    def permits(self, token: int) -> bool:
        del token
        return False

    def mask(self) -> bytes:
        if self.failed:
            raise self.bounds.failure()
        return bytes(self.bounds.mask_bytes)

    def prefetch(self) -> None:
        pass

    def is_complete(self) -> bool:
        return False
