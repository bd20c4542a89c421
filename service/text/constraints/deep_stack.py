"""Threads with room for deep recursion, waited for only so long."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from service.errors import GrammarsBusy

Result = TypeVar("Result")

# A compiler that recurses over rules overruns a usual stack of 8 MiB at some thousands of them,
# and takes the process with it. Only the pages that are touched are real.
STACK_BYTES = 256 * 1024 * 1024

# The size of a stack is a setting of the whole interpreter, read when a thread starts.
_START = threading.Lock()


class DeepStacks:
    """Runs pieces of work on stacks of their own, at most `threads` at once.

    Work that is no longer waited for keeps its thread until it ends by itself. So does the
    process: one that ended under the work would crash.
    """

    def __init__(self, threads: int) -> None:
        self._free = threading.BoundedSemaphore(threads)

    def run(self, work: Callable[[], Result], seconds: float) -> Result:
        """Return the result of the work.

        Raises:
            GrammarsBusy: no thread became free in so many seconds.
            TimeoutError: the work did not end in so many seconds.
        """
        if not self._free.acquire(timeout=seconds):
            raise GrammarsBusy
        future: Future[Result] = Future()
        try:
            _start(lambda: self._finish(future, work))
        except RuntimeError:
            self._free.release()
            raise
        return future.result(timeout=seconds)

    def _finish(self, future: Future[Result], work: Callable[[], Result]) -> None:
        try:
            result = work()
        except BaseException as failed:  # noqa: BLE001 - whatever it is belongs to who waits
            future.set_exception(failed)
        else:
            future.set_result(result)
        finally:
            self._free.release()


def _start(body: Callable[[], None]) -> None:
    with _START:
        usual = threading.stack_size(STACK_BYTES)
        try:
            threading.Thread(target=body, name="grammar", daemon=False).start()
        finally:
            threading.stack_size(usual)
