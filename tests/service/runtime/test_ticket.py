import pytest

from service.errors import Draining, EngineError, RequestTimedOut
from service.generation.events import Finished, TextDelta
from service.generation.finish import FinishReason, MatchedStop
from service.generation.sequence import TokenCommit
from service.runtime.request import Ended, Failed
from service.runtime.ticket import closing_message, without_cancelled_end
from service.speculation.lane import TerminalRequest
from service.speculation.lifecycle import RequestStatus
from service.speculation.publication import PublishedRound
from service.speculation.round import TokenSource
from service.speculation.statistics import SequenceStatistics
from tests.service.runtime.doubles import DrivenEngine, loaded_model, request

STATISTICS = SequenceStatistics(emitted_tokens=2)
FAULT, LATE = EngineError("fault"), RequestTimedOut(1.0)
CANCELLED = Finished(FinishReason.CANCELLED)


def ticket_with(verdict=None):
    ticket = DrivenEngine(loaded_model()).ticket(request("hello"))
    if verdict is not None:
        ticket.end_with(verdict)
    return ticket


def terminal(status, reason=None, error=None):
    stop = MatchedStop(0, text="x")
    return TerminalRequest(0, 0, True, status, (1, 2), reason, stop, STATISTICS, error)


@pytest.mark.parametrize(
    ("verdict", "status", "reason", "error", "told"),
    [
        (None, RequestStatus.FAILED, None, FAULT, FAULT),
        (LATE, RequestStatus.FAILED, None, FAULT, LATE),
        (LATE, RequestStatus.CANCELLED, FinishReason.CANCELLED, None, LATE),
    ],
)
def test_last_message_of_a_failure_holds_the_first_verdict(verdict, status, reason, error, told):
    last = closing_message(ticket_with(verdict), terminal(status, reason, error))
    assert Failed(told, STATISTICS) == last


@pytest.mark.parametrize("verdict", [None, LATE])
def test_last_message_of_a_completed_request_is_its_end_whatever_the_verdict(verdict):
    last = closing_message(
        ticket_with(verdict), terminal(RequestStatus.COMPLETED, FinishReason.STOP_SEQUENCE)
    )
    expected = Ended(FinishReason.STOP_SEQUENCE, MatchedStop(0, text="x"), 5, 2, STATISTICS)
    assert expected == last


def test_last_message_of_a_cancelled_request_is_its_end():
    last = closing_message(ticket_with(), terminal(RequestStatus.CANCELLED, FinishReason.CANCELLED))
    assert FinishReason.CANCELLED is last.reason


def test_first_verdict_stays():
    ticket = ticket_with(LATE)
    ticket.end_with(Draining())
    assert ticket.verdict is LATE


def test_cancelled_end_is_dropped_and_an_empty_round_with_it():
    token = TokenCommit(7, 0, None)
    full = PublishedRound((token,), (TokenSource.PLAIN,), 0, 0, (TextDelta("a"), CANCELLED))
    assert (TextDelta("a"),) == without_cancelled_end(full).events
    assert (token,) == without_cancelled_end(full).tokens
    assert without_cancelled_end(PublishedRound((), (), 0, 0, (CANCELLED,))) is None


def test_other_ends_are_kept():
    end = PublishedRound((), (), 0, 0, (Finished(FinishReason.EOS),))
    assert end == without_cancelled_end(end)
