import itertools

import pytest

from service.errors import InvalidStatusTransition
from service.speculation.lifecycle import (
    EDGES,
    TERMINAL,
    CancellationDisposition,
    Lifecycle,
    RequestStatus,
)


def test_cancellation_is_deferred_while_a_submission_is_retained():
    lifecycle = Lifecycle()
    for status in (
        RequestStatus.READY_TO_DRAFT,
        RequestStatus.READY_TO_SUBMIT_VERIFICATION,
        RequestStatus.TARGET_VERIFICATION_IN_FLIGHT,
    ):
        lifecycle = lifecycle.to(status)
    lifecycle, disposition = lifecycle.request_cancellation(submission_retained=True)
    assert disposition is CancellationDisposition.DEFERRED
    assert lifecycle.cancellation_pending
    lifecycle = lifecycle.to(RequestStatus.VERIFICATION_RESOLUTION).to(RequestStatus.CANCELLED)
    assert lifecycle.is_terminal
    assert not lifecycle.cancellation_pending
    with pytest.raises(InvalidStatusTransition):
        lifecycle.to(RequestStatus.READY_TO_DRAFT)


@pytest.mark.parametrize(("source", "goal"), list(itertools.product(RequestStatus, repeat=2)))
def test_every_edge_outside_the_table_raises_and_changes_nothing(source, goal):
    lifecycle = Lifecycle(source)
    if goal in EDGES[source]:
        assert lifecycle.to(goal).status is goal
    else:
        with pytest.raises(InvalidStatusTransition) as caught:
            lifecycle.to(goal)
        assert (source.value, goal.value) == (caught.value.source, caught.value.target)
        assert lifecycle.status is source


def test_failed_is_reachable_from_every_status_that_is_not_terminal():
    for status in RequestStatus:
        assert (RequestStatus.FAILED in EDGES[status]) == (status not in TERMINAL)


def test_cancellation_disposes_at_once_or_not_at_all():
    lifecycle, disposition = Lifecycle().request_cancellation(submission_retained=False)
    assert disposition is CancellationDisposition.CANCEL_NOW
    again, disposition = lifecycle.request_cancellation(submission_retained=False)
    assert disposition is CancellationDisposition.ALREADY_TERMINAL
    assert again == lifecycle
