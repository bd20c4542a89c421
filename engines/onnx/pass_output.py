"""What a pass computed, and the buffers that passes borrow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from engines.onnx.logits import Floats
from engines.onnx.passes import LaneInput
from service.errors import EngineError
from service.speculation.contract import Distribution, Sampler, TargetRows, TokenLogprob


class OnnxPass:
    """What one pass computed; it owns its logits until it is released.

    `rows[i]` holds the rows of lane i, or nothing where none was wanted.
    """

    def __init__(
        self,
        lanes: Sequence[LaneInput],
        rows: Sequence[TargetRows | None],
        seconds: float,
        give_back: Callable[[], None],
    ) -> None:
        self.lanes = tuple(lanes)
        self.seconds = seconds
        self._rows = tuple(rows)
        self._give_back: Callable[[], None] | None = give_back

    def rows(self, lane: int) -> LaneRows:
        """Return a lane's rows; EngineError after the release."""
        self.require_held()
        if not 0 <= lane < len(self.lanes):
            raise EngineError(f"the pass has no lane {lane}")
        return LaneRows(self, self._rows[lane], self.lanes[lane].wanted)

    def release(self) -> None:
        if self._give_back is not None:
            self._give_back()
        self._give_back = None
        self._rows = ()

    def require_held(self) -> None:
        if self._give_back is None:
            raise EngineError("the pass was released")


@dataclass(frozen=True, slots=True)
class LaneRows:
    """The rows of one lane of a pass, as long as the pass is held."""

    owner: OnnxPass
    computed: TargetRows | None
    count: int

    def distribution(self, row: int, sampler: Sampler) -> Distribution:
        """Process one row; EngineError where the pass computed none, or was released."""
        return self._held(row).distribution(row, sampler)

    def logprob(self, row: int, sampler: Sampler, token: int, alternatives: int) -> TokenLogprob:
        return self._held(row).logprob(row, sampler, token, alternatives)

    def raw_logprob(self, row: int, token: int, alternatives: int) -> TokenLogprob:
        return self._held(row).raw_logprob(row, token, alternatives)

    def _held(self, row: int) -> TargetRows:
        self.owner.require_held()
        if self.computed is None or not 0 <= row < self.count:
            raise EngineError(f"row {row} is none of the {self.count} that the lane asked for")
        return self.computed


class LogitsPool:
    """Buffers for passes whose rows are still being read; one is enough for passes in turn."""

    def __init__(self, rows: int, vocabulary: int) -> None:
        self._shape = (rows, vocabulary)
        self._free: list[Floats] = []

    def take(self) -> Floats:
        return self._free.pop() if self._free else np.empty(self._shape, np.float32)

    def give_back(self, buffer: Floats) -> None:
        self._free.append(buffer)
