from service.generation.randomness import AddressedRandomness, randomness_from_seed
from service.speculation.contract import Proposal
from service.speculation.policy import Accept, Reject, acceptance_probability, judge
from tests.service.speculation.doubles import FixedStream, Weights


def test_greedy_judgement_asks_only_for_the_targets_choice():
    trace = []
    target = Weights((0.9, 0.1), trace)
    draft = Weights((0.1, 0.9), trace)
    decision, stream = judge(target, Proposal(1, draft), None)
    assert decision == Reject(0)
    assert stream is None
    assert trace == ["sample"]


def test_randomness_gives_the_target_a_stream_and_the_draft_positions():
    randomness = randomness_from_seed(3, 0.7)
    assert randomness.target.draws == 0
    assert isinstance(randomness.draft, AddressedRandomness)
    assert randomness.draft.at(4) == randomness_from_seed(3, 0.7).draft.at(4)
    greedy = randomness_from_seed(3, 0.0)
    assert (None, None) == (greedy.target, greedy.draft)


def test_acceptance_probability_is_the_capped_ratio_and_zero_for_impossible_tokens():
    assert acceptance_probability(0.25, 0.5) == 0.5
    assert acceptance_probability(0.5, 0.25) == 1.0
    assert acceptance_probability(0.25, 0.0) == 1.0
    assert acceptance_probability(0.0, 0.5) == 0.0
    assert acceptance_probability(0.0, 0.0) == 0.0


def test_stochastic_judgement_accepts_or_draws_from_the_residual():
    trace = []
    same = Weights((0.269, 0.731), trace)
    decision, stream = judge(same, Proposal(1, same), FixedStream(b"", 0, 0.9, trace))
    assert decision == Accept()
    assert stream.draws == 1
    assert trace == ["probability", "probability", "uniform"]

    trace.clear()
    target, draft = Weights((0.119, 0.881), trace), Weights((0.881, 0.119), trace)
    decision, stream = judge(target, Proposal(0, draft), FixedStream(b"", 0, 0.5, trace))
    assert decision == Reject(1)
    assert stream.draws == 2
    assert trace == [
        "probability",
        "probability",
        "uniform",
        "difference",
        "uniform",
        "sample",
    ]


def test_draw_of_exactly_zero_never_accepts_an_impossible_token():
    target, draft = Weights((0.0, 1.0)), Weights((1.0, 0.0))
    decision, _ = judge(target, Proposal(0, draft), FixedStream(b"", 0, 0.0))
    assert decision == Reject(1)


def test_draw_equal_to_the_acceptance_probability_rejects():
    target, draft = Weights((0.25, 0.75)), Weights((0.5, 0.5))
    decision, _ = judge(target, Proposal(0, draft), FixedStream(b"", 0, 0.5))
    assert decision == Reject(1)


def test_residual_without_mass_falls_back_to_the_target():
    """The pair is not normalised, so that nothing is left over and yet u rejects."""
    target, draft = Weights((0.2, 0.1)), Weights((0.9, 0.1))
    decision, _ = judge(target, Proposal(0, draft), FixedStream(b"", 0, 0.5))
    assert decision == Reject(1)
