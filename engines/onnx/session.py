"""Open a bundle's graph, and prove that it is the graph its manifest describes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnxruntime

from engines.bundle.bundle import Bundle
from engines.bundle.manifest import Tensor
from service.errors import BundleError

_ERRORS_ONLY = 3
_TYPES = {"int64": "tensor(int64)", "float32": "tensor(float)"}


def open_session(bundle: Bundle, threads: int) -> onnxruntime.InferenceSession:
    """Load the decoder with a pool of `threads`, the caller's own included.

    Raises BundleError when ONNX Runtime refuses the graph, or when its inputs or
    outputs have not the names, types and shapes of the manifest.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Threads spin between the steps of a pass, where sleeping at once would cost 5 %, but not for
    # long and not between passes: a second session, the rest of the server and other programs
    # need the cores. (Beside one busy program a pass takes 24 ms so, 44 ms with endless spinning.)
    options.add_session_config_entry("session.force_spinning_stop", "1")
    options.add_session_config_entry("session.intra_op.spin_duration_us", "50")
    # Patterns are remembered for each distinct shape; ragged passes have thousands.
    options.enable_mem_pattern = False
    options.log_severity_level = _ERRORS_ONLY
    path = str(bundle.graph_path)
    try:
        session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
    except Exception as refused:
        raise BundleError(f"ONNX Runtime refuses the graph: {refused}", path=path) from refused
    graph = bundle.manifest.graph
    _compare(path, "graph.inputs", graph.inputs, session.get_inputs())
    _compare(path, "graph.outputs", graph.outputs, session.get_outputs())
    return session


def _compare(
    path: str,
    field: str,
    declared: Mapping[str, Tensor],
    nodes: Sequence[onnxruntime.NodeArg],
) -> None:
    found = {each.name: (each.type, tuple(map(str, each.shape))) for each in nodes}
    wanted = {name: (_TYPES.get(each.dtype), each.shape) for name, each in declared.items()}
    if wanted != found:
        names = ", ".join(sorted({name for name, _ in wanted.items() ^ found.items()}))
        raise BundleError(f"graph and manifest disagree on {names}", path=path, field=field)
