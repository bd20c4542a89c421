"""Bindings that hand ONNX Runtime pointers, kept for as long as the pointers hold."""

from __future__ import annotations

from typing import Any

import onnxruntime
from numpy.typing import NDArray

from engines.onnx.caches import Floats, KvCaches
from engines.onnx.inputs import CallInputs, InputShape


class RangeBinding:
    """Binds a contiguous range of cache rows in place, and the small inputs of a call.

    Each cache is bound by one pointer as past and as present, so TensorScatter
    writes into it. The small inputs are bound anew only when a shape changed.
    """

    def __init__(
        self, session: onnxruntime.InferenceSession, caches: KvCaches, first: int, span: int
    ) -> None:
        self._session = session
        self._binding = session.io_binding()
        self._shape: InputShape | None = None
        self._logits: int | None = None
        for index, array in enumerate(caches.arrays):
            name = f"{('key', 'value')[index % 2]}_{index // 2}"
            rows = array[first : first + span]
            self._bind_input(f"past_{name}", rows)
            self._bind_output(f"present_{name}", rows)

    def bind(self, shape: InputShape, inputs: CallInputs, logits: Floats) -> None:
        """Bind what this call takes and gives; nothing where the last call was alike."""
        if shape != self._shape:
            self._shape = None
            for name, array in inputs.views(shape).items():
                self._bind_input(name, array)
        pointer = logits.ctypes.data
        if shape != self._shape or pointer != self._logits:
            self._logits = None
            self._bind_output("logits", logits)
        self._shape, self._logits = shape, pointer

    def run(self) -> None:
        """Compute; the interpreter lock is released meanwhile."""
        self._session.run_with_iobinding(self._binding)

    def _bind_input(self, name: str, array: NDArray[Any]) -> None:
        self._binding.bind_input(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)

    def _bind_output(self, name: str, array: NDArray[Any]) -> None:
        self._binding.bind_output(name, "cpu", 0, array.dtype.type, array.shape, array.ctypes.data)


class Bindings:
    """The bindings in use, by the range of cache rows they cover."""

    def __init__(self, session: onnxruntime.InferenceSession, caches: KvCaches) -> None:
        self._session = session
        self._caches = caches
        self._ranges: dict[tuple[int, int], RangeBinding] = {}

    def range(self, first: int, span: int) -> RangeBinding:
        """Give the binding of the cache rows `first` to `first + span`."""
        key = (first, span)
        if key not in self._ranges:
            self._ranges[key] = RangeBinding(self._session, self._caches, first, span)
        return self._ranges[key]

    def forget(self) -> None:
        """Drop every binding, because the caches have moved."""
        self._ranges.clear()
