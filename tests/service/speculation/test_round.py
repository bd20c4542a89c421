import pytest

from service.errors import EmptyProposalBlock, IncompleteRound, InvalidRoundTransition
from service.speculation.round import SpeculativeRound, Tail, TokenSource


def test_commit_plan_keeps_the_trailing_token_out_of_the_cache():
    rejected = SpeculativeRound(3).accept(10).reject_with(99).plan()
    assert rejected.accepted == 1
    assert rejected.committed == (10, 99)
    assert rejected.verified_inputs == 2
    assert rejected.tail is Tail.REPLACEMENT
    assert rejected.sources == (TokenSource.ACCEPTED, TokenSource.REPLACEMENT)

    terminal = SpeculativeRound(2).accept(10).accept(11, terminal=True).plan()
    assert terminal.full_acceptance
    assert terminal.verified_inputs == 2
    assert terminal.tail is None

    bonus = SpeculativeRound(2).accept(10).accept(11).bonus(12).plan()
    assert bonus.verified_inputs == 3
    assert bonus.sources[-1] is TokenSource.BONUS

    cut = SpeculativeRound(3).accept(10).accept(11).cut().plan()
    assert cut.verified_inputs == 2
    assert cut.sources == (TokenSource.ACCEPTED, TokenSource.ACCEPTED)
    assert (cut.tail, cut.terminal) == (None, False)

    with pytest.raises(IncompleteRound):
        SpeculativeRound(2).accept(10).plan()


@pytest.mark.parametrize(
    "steps",
    [
        lambda r: r.bonus(1),
        lambda r: r.accept(1).accept(2).accept(3),
        lambda r: r.accept(1).accept(2).reject_with(3),
        lambda r: r.reject_with(1).accept(2),
        lambda r: r.reject_with(1).reject_with(2),
        lambda r: r.accept(1, terminal=True).accept(2),
        lambda r: r.accept(1).accept(2).bonus(3).bonus(4),
        lambda r: r.accept(1).accept(2, terminal=True).bonus(3),
        lambda r: r.cut(),
        lambda r: r.accept(1).cut().accept(2),
        lambda r: r.accept(1).accept(2).cut().bonus(3),
        lambda r: r.reject_with(1).cut(),
    ],
)
def test_round_refuses_steps_out_of_order(steps):
    with pytest.raises(InvalidRoundTransition):
        steps(SpeculativeRound(2))


def test_round_without_proposals_is_refused():
    with pytest.raises(EmptyProposalBlock):
        SpeculativeRound(0)
