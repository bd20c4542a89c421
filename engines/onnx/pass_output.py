"""What a pass computed, and the buffers that passes borrow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from engines.onnx.logits import Floats
from service.errors import EngineError
from service.speculation.contract import TargetRows


@dataclass(frozen=True, slots=True)
class SubmittedLane:
    """A lane as it went into a pass; it can keep at most `inputs` after `checkpoint`."""

    slot: int
    checkpoint: int
    inputs: int


class OnnxPass:
    """What one pass computed; it owns its logits until it is released."""

    def __init__(
        self,
        lanes: Sequence[SubmittedLane],
        rows: Sequence[TargetRows | None],
        seconds: float,
        give_back: Callable[[], None],
    ) -> None:
        self.lanes = tuple(lanes)
        self.seconds = seconds
        self._rows: Sequence[TargetRows | None] = tuple(rows)
        self._give_back: Callable[[], None] | None = give_back

    def rows(self, lane: int) -> TargetRows:
        """Return a lane's rows; EngineError after the release, or before its last chunk."""
        if self._give_back is None:
            raise EngineError("the pass was released")
        rows = self._rows[lane]
        if rows is None:
            raise EngineError(f"lane {lane} has no row before the last chunk of its prompt")
        return rows

    def release(self) -> None:
        if self._give_back is not None:
            self._give_back()
        self._give_back = None
        self._rows = ()


class LogitsPool:
    """Buffers for passes whose rows are still being read; one is enough for passes in turn."""

    def __init__(self, vocabulary: int, rows: int) -> None:
        self._shape = (rows, vocabulary)
        self._free: list[Floats] = []

    def take(self, rows: int) -> Floats:
        if rows > self._shape[0]:
            self._shape = (rows, self._shape[1])
            self._free.clear()
        return self._free.pop() if self._free else np.empty(self._shape, np.float32)

    def give_back(self, buffer: Floats) -> None:
        if buffer.shape == self._shape:
            self._free.append(buffer)
