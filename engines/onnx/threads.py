"""The one pool of compute threads that every session of the process shares.

A pool for each session would spin against the others: a draft and a target on
two cores lose half their speed that way.
"""

from __future__ import annotations

import onnxruntime

from service.errors import EngineError

_configured: list[int] = []


def configure_threads(threads: int) -> None:
    """Size the shared pool; the first call of the process decides.

    Raises EngineError when a later call asks for another size: ONNX Runtime
    cannot change it.
    """
    if not _configured:
        onnxruntime.set_global_thread_pool_sizes(threads, 1)
        _configured.append(threads)
    elif _configured[0] != threads:
        message = f"the process already computes with {_configured[0]} threads, not {threads}"
        raise EngineError(message)
