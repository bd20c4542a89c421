import pytest

from service.errors import PublicationError
from service.generation.cancellation import CancellationToken
from service.generation.events import Finished, TextDelta
from service.generation.finish import FinishReason
from service.generation.sequence import TokenCommit
from service.speculation.publication import CallbackPublisher, RoundTokens, TokensOnly
from service.speculation.round import TokenSource

ONE = RoundTokens((TokenCommit(7, 0, None),), (TokenSource.PLAIN,))


class EchoText(TokensOnly):
    """Emits a text delta for each token."""

    def __init__(self):
        super().__init__()
        self.staged = []

    def push_token(self, token):
        self.staged.append(TextDelta(str(token)))

    def take_events(self):
        staged, self.staged = tuple(self.staged), []
        return staged + super().take_events()


def test_publisher_delivers_a_committed_round_with_its_events_once():
    delivered = []
    text = EchoText()
    text.push_token(7)
    text.finish(FinishReason.MAX_TOKENS)
    publisher = CallbackPublisher(delivered.append)
    cancelled = publisher.publish_committed(text, ONE, CancellationToken(), finished=True)
    assert not cancelled
    (round_,) = delivered
    assert round_.tokens == ONE.tokens
    assert round_.events == (TextDelta("7"), Finished(FinishReason.MAX_TOKENS))
    assert text.take_events() == ()


def test_publisher_delivers_a_cancelled_end():
    delivered = []
    CallbackPublisher(delivered.append).publish_cancelled(EchoText())
    (round_,) = delivered
    assert round_.tokens == ()
    assert round_.events == (Finished(FinishReason.CANCELLED),)


def test_publisher_passes_on_the_consumers_refusal():
    def refuse(published):
        raise PublicationError("consumer closed")

    with pytest.raises(PublicationError, match="consumer closed"):
        CallbackPublisher(refuse).publish_committed(
            TokensOnly(), ONE, CancellationToken(), finished=False
        )


def test_cancel_before_publication_still_delivers_that_round():
    delivered = []
    cancellation = CancellationToken()
    cancellation.cancel()
    text = EchoText()
    text.push_token(7)
    publisher = CallbackPublisher(delivered.append)
    assert publisher.publish_committed(text, ONE, cancellation, finished=False)
    (round_,) = delivered
    assert round_.tokens == ONE.tokens
    assert round_.events == (TextDelta("7"), Finished(FinishReason.CANCELLED))


def test_cancel_during_publication_delivers_the_round_and_then_the_end():
    delivered = []
    cancellation = CancellationToken()

    def deliver(published):
        delivered.append(published)
        cancellation.cancel()

    publisher = CallbackPublisher(deliver)
    assert publisher.publish_committed(EchoText(), ONE, cancellation, finished=False)
    assert [len(round_.tokens) for round_ in delivered] == [1, 0]
    assert delivered[-1].events == (Finished(FinishReason.CANCELLED),)


def test_cancel_after_the_end_changes_nothing():
    delivered = []
    cancellation = CancellationToken()
    cancellation.cancel()
    publisher = CallbackPublisher(delivered.append)
    assert not publisher.publish_committed(EchoText(), ONE, cancellation, finished=True)
    assert delivered[0].events == ()
