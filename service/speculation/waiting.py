"""Wait for a pass exactly once, and leave no live work behind, however it ends."""

from __future__ import annotations

from dataclasses import replace

from service.errors import CompletionDeadline, OutriderError, SettingError
from service.speculation.completion import (
    BoundedWait,
    Completion,
    CompletionCancellation,
    DeadlineExceeded,
)
from service.speculation.lane import as_outrider_error
from service.speculation.options import SchedulerOptions

_EMERGENCY = BoundedWait(1e-9, CompletionCancellation.QUARANTINE_UNTIL_COMPLETE)


def await_completion(
    completion: Completion, options: SchedulerOptions, waited: float = 0.0
) -> OutriderError | None:
    """Wait for a pass within what is left of its bound; return how it failed, if it did.

    `waited` are the seconds since it was submitted: the thread that waits here
    serves nobody else, so a pass that has had its time gets no more.

    Whatever is returned, the work has ended or its buffers are in safe hands.
    """
    try:
        bound = options.completion_wait()
    except SettingError as refused:
        return _dispose(completion, _EMERGENCY) or refused
    policy = replace(bound, timeout=max(bound.timeout - waited, _EMERGENCY.timeout))
    try:
        complete = completion.is_complete()
    except Exception as error:  # noqa: BLE001 - a foreign engine may raise anything
        _dispose(completion, policy)
        return as_outrider_error(error)
    try:
        if complete:
            completion.wait()
            return None
        outcome = completion.wait_bounded(policy)
    except Exception as error:  # noqa: BLE001 - a foreign engine may raise anything
        return as_outrider_error(error)
    if isinstance(outcome, DeadlineExceeded):
        return CompletionDeadline(outcome.cancellation.value)
    return None


def _dispose(completion: Completion, policy: BoundedWait) -> OutriderError | None:
    """Bring work of unknown state to a safe disposition."""
    try:
        completion.wait_bounded(policy)
    except Exception as error:  # noqa: BLE001 - the work has failed for good or is quarantined
        return as_outrider_error(error)
    return None
