from dataclasses import replace

import pytest

from engines.scripted.model import ScriptedSettings
from service.errors import InvalidRequest, SpeculationUnavailable, UnknownProposer
from service.runtime.request import (
    ResolvedSpeculation,
    SpeculationMode,
    SpeculationOffReason,
    SpeculationRequest,
)
from service.runtime.speculation_choice import choose_speculation
from service.speculation.capability import Declared, DraftSource, Unavailable, Unsupported
from service.speculation.options import SchedulerOptions
from tests.service.runtime.doubles import LAW, loaded_model, loaded_proposer

LOOKUP = loaded_proposer("lookup", mode=SpeculationMode.PROMPT_LOOKUP)
DRAFT = loaded_proposer("draft", mode=SpeculationMode.DRAFT_MODEL)
ANYTHING = SpeculationRequest()
MODEL = loaded_model(proposers=(DRAFT, LOOKUP))


def choice(asked=ANYTHING, model=MODEL, *, sampled=False, seeded=False):
    return choose_speculation(model, asked, sampled=sampled, seeded=seeded, fixed_width=4)


def test_automatic_choice_is_the_preferred_proposer_and_adapts():
    expected = ResolvedSpeculation(SpeculationMode.DRAFT_MODEL, "draft", 16, fixed=False)
    assert (expected, DRAFT) == choice()


def test_mode_none_is_off_because_it_was_asked_for():
    resolved, proposer = choice(SpeculationRequest(mode=SpeculationMode.NONE))
    assert SpeculationOffReason.REQUESTED is resolved.off_reason
    assert "speculation.mode" in resolved.off_detail
    assert proposer is None


def test_model_without_proposers_is_off_and_says_so():
    resolved, proposer = choice(model=loaded_model())
    assert SpeculationMode.NONE is resolved.mode
    assert SpeculationOffReason.NO_PROPOSER is resolved.off_reason
    assert "scripted" in resolved.off_detail
    assert proposer is None


def test_mode_by_name_takes_the_proposer_of_that_mode():
    resolved, proposer = choice(SpeculationRequest(mode=SpeculationMode.PROMPT_LOOKUP))
    assert "lookup" == resolved.proposer
    assert proposer is LOOKUP


def test_proposer_by_name_needs_no_mode():
    assert choice(SpeculationRequest(proposer="lookup"))[1] is LOOKUP


def test_unknown_proposer_is_refused_with_those_that_are_loaded():
    with pytest.raises(UnknownProposer) as caught:
        choice(SpeculationRequest(proposer="other"))
    assert ("draft", "lookup") == caught.value.loaded


def test_proposer_of_another_mode_is_refused_by_its_field():
    with pytest.raises(InvalidRequest) as caught:
        choice(SpeculationRequest(mode=SpeculationMode.MTP, proposer="draft"))
    assert ["speculation.proposer"] == [each.field for each in caught.value.violations]


@pytest.mark.parametrize(
    ("capability", "mode", "reason"),
    [
        (Unavailable(), SpeculationMode.MTP, "no such draft"),
        (Declared(DraftSource.EMBEDDED), SpeculationMode.MTP, "not prepared"),
        (Unsupported(DraftSource.EMBEDDED, "mamba"), SpeculationMode.EAGLE3, "mamba"),
        (Unavailable(), SpeculationMode.SHARED_KV, "no such draft"),
        (Unavailable(), SpeculationMode.PROMPT_LOOKUP, "no proposer"),
    ],
)
def test_mode_that_is_not_ready_is_refused_with_the_reason(capability, mode, reason):
    model = loaded_model(capability=capability)
    with pytest.raises(SpeculationUnavailable, match=reason) as caught:
        choice(SpeculationRequest(mode=mode), model)
    assert mode.value == caught.value.mode


@pytest.mark.parametrize(
    ("sampled", "seeded", "width", "fixed"),
    [
        (False, False, 16, False),
        (False, True, 16, False),
        (True, False, 16, False),
        (True, True, 4, True),
    ],
)
def test_width_is_fixed_for_seeded_samples_alone(sampled, seeded, width, fixed):
    resolved, _ = choice(sampled=sampled, seeded=seeded)
    assert (width, fixed) == (resolved.num_speculative_tokens, resolved.fixed)


def test_width_that_was_asked_for_is_kept():
    resolved, _ = choice(SpeculationRequest(num_speculative_tokens=7), sampled=True, seeded=True)
    assert (7, True) == (resolved.num_speculative_tokens, resolved.fixed)


@pytest.mark.parametrize("width", [0, -1, 17])
def test_width_out_of_bounds_is_refused_with_the_bounds(width):
    with pytest.raises(InvalidRequest) as caught:
        choice(SpeculationRequest(num_speculative_tokens=width))
    (violation,) = caught.value.violations
    assert "speculation.num_speculative_tokens" == violation.field
    assert f"must be between 1 and 16, got {width}" == violation.description


def test_width_is_capped_so_that_a_pass_has_room_for_the_leading_input():
    narrow = loaded_model(ScriptedSettings(law=LAW, max_pass_rows=6), proposers=(DRAFT,))
    assert 5 == choice(model=narrow)[0].num_speculative_tokens
    with pytest.raises(InvalidRequest, match="between 1 and 5"):
        choice(SpeculationRequest(num_speculative_tokens=6), narrow)


def test_greedy_only_proposers_are_passed_over_for_a_sample():
    greedy = loaded_proposer("greedy", greedy_only=True)
    model = loaded_model(proposers=(greedy, LOOKUP))
    assert choice(model=model, sampled=True)[1] is LOOKUP
    assert choice(model=model, sampled=False)[1] is greedy


def test_sample_that_only_greedy_proposers_could_draft_for_is_off_and_says_so():
    model = loaded_model(proposers=(loaded_proposer("greedy", greedy_only=True),))
    resolved, proposer = choice(SpeculationRequest(proposer="greedy"), model, sampled=True)
    assert SpeculationOffReason.SETTING is resolved.off_reason
    assert "settings.temperature" in resolved.off_detail
    assert proposer is None


OVERLAPPING = loaded_model(
    ScriptedSettings(law=LAW, is_synchronous=False), proposers=(DRAFT, LOOKUP)
)


@pytest.mark.parametrize(
    ("asked", "model", "on"),
    [
        (SpeculationRequest(), OVERLAPPING, True),
        (SpeculationRequest(lookahead=True), OVERLAPPING, True),
        (SpeculationRequest(lookahead=False), OVERLAPPING, False),
        (SpeculationRequest(num_speculative_tokens=1), OVERLAPPING, False),
        (SpeculationRequest(lookahead=True), MODEL, False),
        (
            SpeculationRequest(lookahead=True),
            replace(OVERLAPPING, scheduler=SchedulerOptions(lookahead_blocks=0)),
            False,
        ),
        (
            SpeculationRequest(lookahead=True),
            replace(OVERLAPPING, proposers=(loaded_proposer("flat", can_branch=False),)),
            False,
        ),
    ],
)
def test_lookahead_needs_width_overlap_branching_and_nobody_against_it(asked, model, on):
    assert on is choice(asked, model)[0].lookahead
