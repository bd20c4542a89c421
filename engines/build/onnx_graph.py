"""Write an ONNX graph node by node, its large weights in a file beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from engines.bundle.manifest import Tensor

OPSET = 24
CONTRIB = "com.microsoft"
_INLINE_BYTES = 1024
_PAGE = 4096

_TYPES = {
    "float32": TensorProto.FLOAT,
    "int64": TensorProto.INT64,
    "uint8": TensorProto.UINT8,
}

Shape = Sequence[str | int]


class GraphWriter:
    """Collects nodes and values; weights go to `weights_file` as they come.

    Values are named after the node that makes them, so that a profile or a
    failing session says where in the decoder it is.
    """

    def __init__(self, weights_file: BinaryIO, weights_name: str) -> None:
        self._file = weights_file
        self._file_name = weights_name
        self._nodes: list[onnx.NodeProto] = []
        self.inputs: dict[str, Tensor] = {}
        self.outputs: dict[str, Tensor] = {}
        self._initializers: list[onnx.TensorProto] = []
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    def input(self, name: str, dtype: str, shape: Shape) -> str:
        self.inputs[name] = Tensor(dtype, tuple(str(length) for length in shape))
        return name

    def output(self, name: str, dtype: str, shape: Shape) -> None:
        self.outputs[name] = Tensor(dtype, tuple(str(length) for length in shape))

    def node(self, operator: str, name: str, inputs: Sequence[str], **attributes: Any) -> str:
        """Add a node of the standard operator set; its value is called `name`."""
        return self._add(operator, inputs, [name], "", attributes)[0]

    def split(
        self, names: tuple[str, str], value: str, sizes: str, *, axis: int
    ) -> tuple[str, str]:
        """Part a value in two along an axis."""
        self._add("Split", [value, sizes], names, "", {"axis": axis})
        return names

    def contrib(
        self, operator: str, names: Sequence[str], inputs: Sequence[str], **attributes: Any
    ) -> Sequence[str]:
        """Add a node of ONNX Runtime's own set; an empty name leaves an output out."""
        return self._add(operator, inputs, names, CONTRIB, attributes)

    def constant(self, values: NDArray[Any]) -> str:
        """Name a small constant; equal constants are stored once."""
        key = (values.dtype.str, values.shape, values.tobytes())
        if key not in self._constants:
            name = f"constant_{len(self._constants)}"
            self._constants[key] = self.weight(name, values)
        return self._constants[key]

    def weight(self, name: str, values: NDArray[Any]) -> str:
        """Store an array, in the weights file unless it is small."""
        tensor = TensorProto(name=name, data_type=_TYPES[values.dtype.name], dims=values.shape)
        data = np.ascontiguousarray(values).tobytes()
        if len(data) <= _INLINE_BYTES:
            tensor.raw_data = data
        else:
            self._store(tensor, data)
        self._initializers.append(tensor)
        return name

    def save(self, path: Path, *, producer: str) -> None:
        """Check the graph and write it."""
        graph = helper.make_graph(
            self._nodes,
            "decoder",
            [_value_info(name, tensor) for name, tensor in self.inputs.items()],
            [_value_info(name, tensor) for name, tensor in self.outputs.items()],
            self._initializers,
        )
        imports = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
        model = helper.make_model(graph, opset_imports=imports, producer_name=producer)
        path.write_bytes(model.SerializeToString())
        self._file.flush()
        onnx.checker.check_model(str(path))

    def _add(
        self,
        operator: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        domain: str,
        attributes: dict[str, Any],
    ) -> Sequence[str]:
        name = next(each for each in outputs if each)
        node = helper.make_node(
            operator, list(inputs), list(outputs), name=name, domain=domain, **attributes
        )
        self._nodes.append(node)
        return outputs

    def _store(self, tensor: onnx.TensorProto, data: bytes) -> None:
        # Whole pages let the runtime map a weight instead of copying it.
        self._file.write(bytes(-self._file.tell() % _PAGE))
        offset = self._file.tell()
        self._file.write(data)
        tensor.data_location = TensorProto.EXTERNAL
        facts = {"location": self._file_name, "offset": str(offset), "length": str(len(data))}
        for key, value in facts.items():
            tensor.external_data.add(key=key, value=value)


def _value_info(name: str, tensor: Tensor) -> onnx.ValueInfoProto:
    shape = [int(length) if length.isdigit() else length for length in tensor.shape]
    return helper.make_tensor_value_info(name, _TYPES[tensor.dtype], shape)
