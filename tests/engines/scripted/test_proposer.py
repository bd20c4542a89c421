"""The scripted proposer's rules, and how it holds its callers to the protocol."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.scripted.clock import ManualClock
from engines.scripted.device import Device
from engines.scripted.fault import Fault, FaultPlan, Operation
from engines.scripted.law import HashLaw, continuation
from engines.scripted.model import DRAFT_RULES, draft_rule, scripted_model, scripted_proposer
from engines.scripted.model import ScriptedSettings as Settings
from engines.scripted.proposer import DraftState, Pace
from engines.scripted.rules import FollowLaw, FollowScript, FollowTarget
from engines.scripted.sampling import ScriptedSampler
from engines.scripted.target import seed_of
from engines.scripted.vocabulary import VOCABULARY_SIZE, Special
from service.errors import EngineError
from service.generation.randomness import AddressedRandomness
from service.generation.sampling import MirostatSettings, XtcSettings
from service.speculation.contract import (
    DraftBlock,
    DraftRequest,
    History,
    ProposerCommit,
    SamplingInput,
)
from tests.contract.constraints import Outputs, Stripes
from tests.neutral import SAMPLED

LAW = HashLaw()
PROMPT = (7, 3, 11)
OWN = continuation(LAW, PROMPT, 20, frozenset())
GREEDY = ScriptedSampler(
    SamplingInput(replace(SAMPLED, do_sample=False, temperature=0.0), PROMPT, VOCABULARY_SIZE)
)
ERROR = EngineError("scripted")
END = int(Special.EOS)


def request(generated=OWN[:1], **changes) -> DraftRequest:
    plain = DraftRequest(
        slot=0,
        seed=seed_of((*PROMPT, *generated[:-1])),
        state=None,
        history=History(PROMPT, generated),
        width=4,
        fixed_width=False,
        sampler=GREEDY,
        randomness=None,
        eos_token_ids=frozenset(),
    )
    return replace(plain, **changes)


def committed(*tokens: int, before=(), **changes) -> ProposerCommit:
    generated = (*before, *tokens)
    seed = seed_of((*PROMPT, *generated[:-1]))
    plain = ProposerCommit(0, seed, None, History(PROMPT, generated), tokens, 0)
    return replace(plain, **changes)


def opened(rule, pace=None, faults=None):
    """Return a proposer with one lane behind its prefill."""
    proposer = scripted_proposer("draft", rule, pace, faults)
    proposer.open(0, PROMPT)
    assert [None] == proposer.commit([committed(OWN[0])])
    return proposer


def tokens_of(drawn):
    assert isinstance(drawn, DraftBlock)
    return drawn.tokens


@pytest.mark.parametrize(
    ("pattern", "right"),
    [((True,), [True] * 4), ((False,), [False]), ((True, True, False), [True, False])],
)
def test_follow_target_is_right_by_its_pattern(pattern, right) -> None:
    """The pattern counts output positions; the first proposal here is for position one."""
    (drawn,) = opened(FollowTarget(LAW, pattern)).draft([request()], 1)

    judged = [a == b for a, b in zip(tokens_of(drawn), OWN[1:], strict=False)]
    assert right == judged[: len(right)]


def test_follow_script_proposes_by_position_and_pauses() -> None:
    proposer = opened(FollowScript((None, 5, 6, None, 8)))

    (drawn,) = proposer.draft([request()], 1)
    assert (5, 6) == tokens_of(drawn)
    proposer.commit([committed(5, 6, before=OWN[:1])])
    assert [None] == proposer.draft([request((OWN[0], 5, 6))], 1)


def test_pace_bounds_adaptive_widths_only() -> None:
    proposer = opened(FollowTarget(LAW), Pace(widths=(4, 2)))

    (adaptive,) = proposer.draft([request()], 1)
    (fixed,) = proposer.draft([request(fixed_width=True)], 1)

    assert (2, 4) == (len(tokens_of(adaptive)), len(tokens_of(fixed)))


def test_pace_spends_the_time_of_the_longest_block() -> None:
    device = Device(ManualClock())
    proposer = opened(FollowTarget(LAW), Pace((), 0.5, device))

    proposer.draft([request(width=3)], 1)

    assert 1.5 == device.clock.now()


@pytest.mark.parametrize(
    "wrong",
    [
        {"history": History(PROMPT, OWN[:2])},
        {"history": History((1, *PROMPT), OWN[:1])},
        {"state": DraftState(OWN[:2])},
        {"state": "of another proposer"},
        {"seed": seed_of((*PROMPT, OWN[0]))},
        {"slot": 5},
        {"sampler": object()},
    ],
)
def test_draft_that_does_not_continue_is_the_lanes_error(wrong) -> None:
    (drawn,) = opened(FollowTarget(LAW)).draft([request(**wrong)], 1)

    assert isinstance(drawn, EngineError)


@pytest.mark.parametrize(
    "wrong",
    [
        {"history": History(PROMPT, OWN[:1])},
        {"history": History(PROMPT, OWN[:3])},
        {"accepted": 2},
        {"seed": seed_of((*PROMPT, *OWN[:2]))},
        {"slot": 5},
    ],
)
def test_commit_that_does_not_continue_is_the_lanes_error(wrong) -> None:
    proposer = opened(FollowTarget(LAW))

    (error,) = proposer.commit([committed(OWN[1], before=OWN[:1], **wrong)])

    assert isinstance(error, EngineError)
    assert isinstance(proposer.draft([request()], 1)[0], DraftBlock)


def test_open_of_a_lane_that_was_not_closed_is_refused() -> None:
    proposer = opened(FollowTarget(LAW))

    with pytest.raises(EngineError, match="open already"):
        proposer.open(0, PROMPT)
    proposer.close(0)
    proposer.open(0, PROMPT)
    assert {0} == proposer.open_slots


@pytest.mark.parametrize("slot", [None, 0])
def test_fault_of_drafting_is_the_calls_or_the_lanes(slot) -> None:
    proposer = opened(FollowTarget(LAW), None, FaultPlan([Fault(Operation.DRAFT, ERROR, slot)]))

    if slot is None:
        with pytest.raises(EngineError):
            proposer.draft([request()], 1)
    else:
        assert [ERROR] == proposer.draft([request()], 1)
    assert isinstance(proposer.draft([request()], 1)[0], DraftBlock)


def test_model_offers_every_rule_by_name() -> None:
    model = scripted_model(Settings())

    assert set(DRAFT_RULES) == set(model.proposers)
    assert {"own-law"} == {
        name for name, one in model.proposers.items() if one.traits.has_distribution
    }
    assert all(name == one.traits.name for name, one in model.proposers.items())


def test_rule_of_an_unknown_name_is_refused() -> None:
    with pytest.raises(ValueError, match="always-lucky"):
        draft_rule("always-lucky", LAW)


def under(**settings) -> ScriptedSampler:
    """Return a sampler with settings, greedy unless others are given."""
    return ScriptedSampler(replace(GREEDY.request, **settings))


def test_draft_under_a_constraint_follows_it_along_its_own_proposals() -> None:
    """Each proposal's row is masked at the history that was drafted up to it."""
    constraint = Outputs(((OWN[0], 70, 80, 90), (OWN[0], 71)), END)

    (drawn,) = opened(FollowTarget(LAW)).draft([request(sampler=under(constraint=constraint))], 1)

    assert (70, 80, 90) == tokens_of(drawn)


def test_draft_stops_where_the_constraint_is_complete() -> None:
    """B31: nothing is proposed behind the end of a grammar, whatever the width."""
    constraint = Outputs(((OWN[0], 70),), END)
    sampler = under(constraint=constraint, end_token_ids=frozenset({END}))

    (drawn,) = opened(FollowTarget(LAW)).draft([request(sampler=sampler, fixed_width=True)], 1)

    assert (70,) == tokens_of(drawn)


def test_draft_behind_a_forbidden_guess_stops_without_an_error() -> None:
    """B31: a wrong token that breaks the grammar is a proposal to reject, and the last one."""
    constraint = Outputs(((OWN[0], 70, 80, 90),), END)
    sampler = under(constraint=constraint)

    (drawn,) = opened(FollowTarget(LAW, (False,))).draft([request(sampler=sampler)], 1)

    assert (71,) == tokens_of(drawn)


def test_draft_with_nothing_to_propose_is_a_plain_step() -> None:
    """The target's own row says what is wrong with the request."""
    sampler = under(constraint=Outputs(((9, 9),), END))

    assert [None] == opened(FollowTarget(LAW)).draft([request(sampler=sampler)], 1)


def test_draft_counts_its_own_proposals_for_penalties() -> None:
    """B26: with a bias that wants one token, the penalty moves on at the second proposal."""
    wants = replace(GREEDY.request.config, logit_bias={70: 90.0, 71: 80.0}, presence_penalty=20.0)

    (drawn,) = opened(FollowTarget(LAW)).draft([request(sampler=under(config=wants))], 1)

    assert (70, 71, 70, 70) == tokens_of(drawn)


SETTINGS = {
    "plain": {},
    "truncated": {"top_k": 2, "typical_p": 0.5},
    "banned": {"banned_token_ids": frozenset(range(ord("a"), ord("m")))},
    "xtc": {"xtc": XtcSettings(0.5, 0.1)},
    "mirostat": {"mirostat": MirostatSettings(tau=1.0)},
    "early": {"min_new_tokens": 9},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())
@given(key=st.binary(min_size=1, max_size=8), is_masked=st.booleans())
def test_draft_of_its_own_law_proposes_what_its_distribution_allows(
    settings, key, is_masked
) -> None:
    """Every proposal has probability there, and is one that may follow."""
    sampler = under(
        config=replace(SAMPLED, **settings),
        coins=AddressedRandomness(key),
        constraint=Stripes() if is_masked else None,
        end_token_ids=frozenset({END}),
    )
    start = Stripes().walk(OWN[0])
    proposer = scripted_proposer("draft", FollowLaw(HashLaw(key=b"draft", end_one_in=5)))
    proposer.open(0, PROMPT)
    proposer.commit([committed(*start)])
    asked = request(start, sampler=sampler, randomness=AddressedRandomness(key), width=6)

    (drawn,) = proposer.draft([asked], 1)

    generated = start
    for proposal in drawn.proposals:
        assert proposal.distribution.probability(proposal.token) > 0.0
        assert sampler.may_follow(generated, proposal.token)
        generated = (*generated, proposal.token)
