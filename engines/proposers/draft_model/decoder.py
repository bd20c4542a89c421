"""What a draft asks of the decoder that runs it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from service.speculation.contract import Tokens

Logits = NDArray[np.float32]

Input = TypeVar("Input")
InputT_contra = TypeVar("InputT_contra", contravariant=True)

MakeInput = Callable[[int, int, Tokens, int], Input]
"""Builds one lane's input from slot, start, tokens and how many of its last rows are wanted."""


class DraftDecoder(Protocol[InputT_contra]):
    """A model with slots; only the first tokens of a slot, as many as its length, count."""

    max_slots: int
    max_context: int
    vocabulary_size: int

    def open(self) -> int:
        """Take a free slot with an empty cache."""

    def close(self, slot: int) -> None:
        """Free a slot."""

    def truncate(self, slot: int, length: int) -> None:
        """Keep the first `length` tokens of a slot; host bookkeeping only."""

    def forward(self, lanes: Sequence[InputT_contra]) -> Iterable[Logits]:
        """Append tokens to slots and return each lane's wanted rows `[wanted, vocabulary]`.

        The rows are valid until the next call. A call that fails leaves every
        slot as long as it was; called again with fewer lanes it may succeed.
        """
