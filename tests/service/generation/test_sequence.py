import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import AlreadyFinished
from service.generation.cancellation import CancellationToken
from service.generation.finish import FinishReason, MatchedStop
from service.generation.sequence import GenerationSequence, TerminalSignals

STOP = MatchedStop(0, text="x")


def test_terminal_precedence_and_cancellation_are_canonical():
    sequence = GenerationSequence(2, frozenset({7}))
    sequence, first = sequence.commit(1)
    assert first.finish_reason is None
    sequence, second = sequence.commit(7, TerminalSignals(STOP, grammar_complete=True))
    assert second.finish_reason is FinishReason.STOP_SEQUENCE
    assert sequence.matched_stop == STOP
    assert sequence.cancel() is sequence

    token = CancellationToken()
    active = GenerationSequence(3)
    assert active.observe_cancellation(token) is active
    token.cancel()
    assert active.observe_cancellation(token).finish_reason is FinishReason.CANCELLED


@pytest.mark.parametrize(
    ("signals", "token", "budget", "room", "reason"),
    [
        (TerminalSignals(STOP, grammar_complete=True), 7, 1, 1, FinishReason.STOP_SEQUENCE),
        (TerminalSignals(None, grammar_complete=True), 7, 1, 1, FinishReason.GRAMMAR_COMPLETE),
        (TerminalSignals(), 7, 1, 1, FinishReason.EOS),
        (TerminalSignals(), 1, 1, 1, FinishReason.MAX_TOKENS),
        (TerminalSignals(), 1, 2, 1, FinishReason.CONTEXT_LENGTH),
        (TerminalSignals(), 1, 2, 2, None),
    ],
)
def test_commit_at_one_token_prefers_stop_grammar_eos_then_budget_or_window(
    signals, token, budget, room, reason
):
    sequence = GenerationSequence(budget, frozenset({7}), context_room=room)
    _, commit = sequence.commit(token, signals)
    assert commit.finish_reason is reason


def test_commit_after_the_end_is_refused_and_changes_nothing():
    ended, _ = GenerationSequence(1).commit(1)
    with pytest.raises(AlreadyFinished):
        ended.commit(2)
    assert ended.tokens == (1,)


def test_cancel_of_a_zero_budget_sequence_still_cancels():
    zero = GenerationSequence(0)
    assert zero.finish_reason is FinishReason.MAX_TOKENS
    assert zero.cancel().finish_reason is FinishReason.CANCELLED


def test_snapshot_storage_counts_tokens_and_end_tokens():
    empty = GenerationSequence(4)
    longer, _ = GenerationSequence(4, frozenset({7})).commit(1)
    assert longer.snapshot_storage_bytes - empty.snapshot_storage_bytes == 8


@given(st.integers(1, 20), st.integers(1, 20), st.lists(st.integers(0, 9), min_size=25))
def test_sequence_never_holds_more_than_its_limit(budget, room, tokens):
    sequence = GenerationSequence(budget, frozenset({9}), context_room=room)
    for token in tokens:
        if sequence.is_finished:
            break
        sequence, commit = sequence.commit(token)
        assert commit.position == len(sequence.tokens) - 1
    assert sequence.is_finished
    assert len(sequence.tokens) <= sequence.limit == min(budget, room)
    assert sequence.remaining == sequence.limit - len(sequence.tokens)
