"""A draft model: its cache under every schedule, its draws, its limits, its failures."""

from __future__ import annotations

import random

import pytest

from engines.proposers.draft_model.proposer import DraftCosts, DraftModel, DraftSettings
from engines.sampling.one_hot import OneHot
from engines.sampling.penalties import Penalties
from engines.sampling.row_sampler import RowSampler
from engines.sampling.truncation import Truncation
from service.errors import (
    ConstraintFailed,
    EngineError,
    IncompatibleDraft,
    InvalidLogits,
    UnknownSlot,
)
from service.speculation.contract import DraftBlock, History
from service.speculation.cost import CostCurve
from tests.contract.constraints import Outputs, Stripes
from tests.engines.proposers.draft_model.scripted_decoder import (
    Input,
    ScriptedDecoder,
    logits_after,
)
from tests.engines.proposers.requests import (
    GREEDY,
    RANDOMNESS,
    SAMPLED,
    Completing,
    commit_of,
    constrained,
    draft_request,
)

COSTS = DraftCosts(
    target=CostCurve.from_points({(1, 1): 10.0, (1, 2): 11.0, (4, 1): 20.0, (4, 2): 22.0}),
    draft=CostCurve.from_points({(1, 1): 1.0, (4, 1): 1.5}),
)
PROMPT = (3, 1, 4, 1, 5)
TRUNCATED = RowSampler(0.8, (Penalties(1.3, 0.2, 0.1),), Truncation(5, 0.9, 0.02))
SAMPLERS = {"greedy": GREEDY, "sampled": SAMPLED, "truncated": TRUNCATED}


def draft_model(
    decoder: ScriptedDecoder, *, slots: int = 1, costs: DraftCosts = COSTS, **settings
) -> DraftModel:
    settings = {"max_slots": slots, "vocabulary_size": 11, "chunk_tokens": 64} | settings
    proposer = DraftModel(decoder, Input, costs, DraftSettings(**settings))
    for slot in range(slots):
        proposer.open(slot, PROMPT)
    return proposer


def recomputed(prompt, generated, width: int, sampler=GREEDY, size: int = 11) -> tuple[int, ...]:
    """Return the block that a draft without any cache would propose."""
    tokens: tuple[int, ...] = ()
    for offset in range(width):
        output = generated + tokens
        row = logits_after(prompt + output, size)
        distribution = sampler.distribution(row, History(prompt, output))
        draw = RANDOMNESS.at(len(generated) + offset) if sampler.temperature else None
        tokens = (*tokens, distribution.sample(draw))
    return tokens


def block_of(proposer: DraftModel, *request, **settings) -> DraftBlock:
    (drawn,) = proposer.draft([draft_request(*request, **settings)], 1)
    assert isinstance(drawn, DraftBlock)
    return drawn


@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS.keys())
@pytest.mark.parametrize("seed", range(6))
def test_cache_follows_any_schedule_of_rounds(sampler, seed) -> None:
    """Rejections, full acceptance, plain steps, dropped and promoted branches, in any order."""
    choices = random.Random(seed)
    proposer = draft_model(ScriptedDecoder())
    generated: tuple[int, ...] = (2,)
    for _ in range(40):
        width = choices.randint(1, 5)
        kind = choices.choice(["plain", "reject", "accept", "drop", "promote"])
        if kind == "plain":
            generated += (choices.randrange(11),)
            proposer.commit([commit_of(PROMPT, generated, generated[-1:])])
            continue
        block = block_of(proposer, PROMPT, generated, width, sampler=sampler)
        assert recomputed(PROMPT, generated, width, sampler) == block.tokens
        assumed = generated + block.tokens
        accepted = choices.randint(0, width - 1) if kind in {"reject", "drop"} else width
        committed = (*block.tokens[:accepted], choices.randrange(11))
        state = block.state
        if kind in {"drop", "promote"}:
            more = choices.randint(1, 4)
            branch = block_of(proposer, PROMPT, assumed, more, state=state, sampler=sampler)
            assert recomputed(PROMPT, assumed, more, sampler) == branch.tokens
        if kind == "promote":
            committed, state = (*block.tokens, branch.tokens[0]), None
        generated += committed
        proposer.commit([commit_of(PROMPT, generated, committed, state=state, accepted=accepted)])


def test_block_has_the_distributions_its_tokens_were_drawn_from() -> None:
    block = block_of(draft_model(ScriptedDecoder()), PROMPT, (2,), 3, sampler=TRUNCATED)

    for row, proposal in enumerate(block.proposals):
        output = (2, *block.tokens[:row])
        expected = TRUNCATED.distribution(
            logits_after(PROMPT + output, 11), History(PROMPT, output)
        )
        assert proposal.distribution.probability(proposal.token) > 0.0
        assert [expected.probability(t) for t in range(11)] == [
            proposal.distribution.probability(t) for t in range(11)
        ]


def test_lanes_share_each_step_of_a_pass() -> None:
    """Three lanes of different width and backlog take as many passes as the widest."""
    decoder = ScriptedDecoder()
    proposer = draft_model(decoder, slots=3)
    block_of(proposer, PROMPT, (2,), 2, slot=1)
    decoder.passes.clear()
    requests = [
        draft_request(PROMPT, (2,), 4, slot=0),
        draft_request(PROMPT, (2, 7), 1, slot=1),
        draft_request(PROMPT, (6,), 3, slot=2),
    ]

    blocks = proposer.draft(requests, 3)

    assert [4, 1, 3] == [len(block.proposals) for block in blocks]
    assert [3, 2, 2, 1] == [len(rows) for rows in decoder.passes]
    assert [recomputed(PROMPT, r.history.generated, r.width) for r in requests] == [
        block.tokens for block in blocks
    ]


def fed_after(committed_of) -> list[int]:
    """Return the rows of each pass that drafts after one round of four proposals."""
    decoder = ScriptedDecoder()
    proposer = draft_model(decoder)
    block = block_of(proposer, PROMPT, (2,), 4)
    committed, accepted = committed_of(block.tokens)
    generated = (2, *committed)
    proposer.commit([commit_of(PROMPT, generated, committed, state=block.state, accepted=accepted)])
    decoder.passes.clear()
    block_of(proposer, PROMPT, generated, 1)
    return [rows for step in decoder.passes for rows in step.values()]


def test_full_acceptance_feeds_the_last_proposal_and_the_bonus() -> None:
    assert [2] == fed_after(lambda tokens: ((*tokens, 9), 4))


@pytest.mark.parametrize("accepted", range(4))
def test_rejection_feeds_the_replacement_only(accepted) -> None:
    """What was accepted is in the cache, what was rejected is rolled back by length."""
    assert [1] == fed_after(
        lambda tokens: ((*tokens[:accepted], (tokens[accepted] + 1) % 11), accepted)
    )


def test_backlog_is_fed_in_chunks_without_proposals() -> None:
    """A long prompt costs each pass one chunk, and drafting begins when it is fed."""
    decoder = ScriptedDecoder()
    prompt = tuple(position % 11 for position in range(50))
    proposer = draft_model(decoder, chunk_tokens=20)
    generated = (2,)
    drawn = []
    for _ in range(3):
        drawn += proposer.draft([draft_request(prompt, generated, 2)], 1)
        generated += (5,)

    assert [None, None] == drawn[:2]
    assert recomputed(prompt, (2, 5, 5), 2) == drawn[2].tokens
    assert [[20], [20], [13], [1]] == [list(step.values()) for step in decoder.passes]


def test_lane_with_a_backlog_holds_up_no_other() -> None:
    proposer = draft_model(ScriptedDecoder(), slots=2, chunk_tokens=8)
    long = tuple(position % 11 for position in range(30))

    waiting, block = proposer.draft(
        [draft_request(long, (2,), 2), draft_request(PROMPT, (2,), 2, slot=1)], 2
    )

    assert waiting is None
    assert recomputed(PROMPT, (2,), 2) == block.tokens


def test_nothing_is_proposed_beyond_the_drafts_context() -> None:
    """B09: blocks shrink towards the end of a shorter context, then drafting stops."""
    decoder = ScriptedDecoder(max_context=10)
    proposer = draft_model(decoder)
    generated: tuple[int, ...] = (2,)
    widths = []
    while len(generated) < 10:
        (drawn,) = proposer.draft([draft_request(PROMPT, generated, 4)], 1)
        widths.append(0 if drawn is None else len(drawn.proposals))
        if drawn is not None:
            assert recomputed(PROMPT, generated, widths[-1]) == drawn.tokens
        generated += (9,)

    assert [4, 4, 3, 2, 1, 0, 0, 0, 0] == widths


def test_padding_of_the_vocabulary_is_never_proposed() -> None:
    """B10: rows beyond the tokenizer's ids exist, and do not count."""
    decoder = ScriptedDecoder(vocabulary_size=40)
    proposer = draft_model(decoder, vocabulary_size=5)
    tokens = block_of(proposer, (1, 2), (2,), 8, sampler=SAMPLED).tokens

    assert max(tokens) < 5


def test_token_beyond_the_drafts_vocabulary_ends_drafting() -> None:
    (drawn,) = draft_model(ScriptedDecoder()).draft([draft_request(PROMPT, (2, 11), 4)], 1)

    assert drawn is None


def test_block_stops_after_an_end_token() -> None:
    whole = block_of(draft_model(ScriptedDecoder()), PROMPT, (2,), 6).tokens
    end = whole[2]

    block = block_of(draft_model(ScriptedDecoder()), PROMPT, (2,), 6, ends=frozenset({end}))

    assert whole[: whole.index(end) + 1] == block.tokens


def test_block_stops_where_a_grammar_is_complete() -> None:
    whole = block_of(draft_model(ScriptedDecoder()), PROMPT, (2,), 6).tokens
    sampler = Completing(complete=(2, *whole[:3]))

    block = block_of(draft_model(ScriptedDecoder()), PROMPT, (2,), 6, sampler=sampler)

    assert whole[:3] == block.tokens


@pytest.mark.parametrize("committed", range(3))
def test_block_follows_a_constraint_along_its_own_tokens(committed) -> None:
    """However much of the output the lane's state has followed already."""
    state = Stripes()
    generated = state.walk(2, 5)
    sampler = constrained(Stripes())
    for token in generated[:committed]:
        sampler = sampler.advance(OneHot(token), token)

    block = block_of(draft_model(ScriptedDecoder()), PROMPT, generated, 6, sampler=sampler)

    for token in generated:
        state = state.after(token)
    for proposal in block.proposals:
        assert state.permits(proposal.token)
        probable = {t for t in range(11) if proposal.distribution.probability(t)}
        assert state.permitted() & set(range(11)) == probable
        state = state.after(proposal.token)


def test_block_ends_where_its_own_tokens_complete_a_grammar() -> None:
    grammar = Outputs(((2, 7, 3), (2, 7, 4)), 10)

    block = block_of(draft_model(ScriptedDecoder()), PROMPT, (2,), 6, sampler=constrained(grammar))

    assert block.tokens in {(7, 3), (7, 4)}


@pytest.mark.parametrize("width", [1, 4])
def test_nothing_left_in_the_draft_ends_its_block_alone(width) -> None:
    """B10: a grammar may ask for a token that only the target has, and that is no error."""
    grammar = Outputs(((2, 5, 30),), 10)
    sampler = constrained(grammar, size=40)
    proposer = draft_model(ScriptedDecoder())

    block = block_of(proposer, PROMPT, (2,), width, sampler=sampler)
    (nothing,) = proposer.draft([draft_request(PROMPT, (2, 5), width, sampler=sampler)], 1)

    assert (5,) == block.tokens
    assert nothing is None


def test_constraint_that_fails_ahead_ends_the_block_alone() -> None:
    """The target may never come to where the draft found that it cannot be followed."""

    class Failing(Stripes):
        def mask(self):
            raise ConstraintFailed("settings.constraint", "takes too long")

    sampler = constrained(Failing())

    (nothing,) = draft_model(ScriptedDecoder()).draft(
        [draft_request(PROMPT, (2,), 4, sampler=sampler)], 1
    )

    assert nothing is None


def test_draws_are_addressed_by_output_position() -> None:
    """The same positions give the same block however the lane came to them."""
    through_rounds = draft_model(ScriptedDecoder())
    first = block_of(through_rounds, PROMPT, (2,), 4, sampler=SAMPLED)
    generated = (2, *first.tokens[:2])

    later = block_of(through_rounds, PROMPT, generated, 4, sampler=SAMPLED)

    assert first.tokens[2:] == later.tokens[:2]


def test_failing_lane_fails_alone() -> None:
    decoder = ScriptedDecoder()
    proposer = draft_model(decoder, slots=3)
    requests = [draft_request(PROMPT, (2,), 3, slot=slot) for slot in range(3)]
    proposer.draft(requests, 3)
    decoder.broken = {list(decoder.slots)[1]}
    requests = [draft_request(PROMPT, (2, 5), 3, slot=slot) for slot in range(3)]

    first, failed, last = proposer.draft(requests, 3)

    assert isinstance(failed, EngineError)
    assert recomputed(PROMPT, (2, 5), 3) == first.tokens == last.tokens


def test_row_that_cannot_be_sampled_fails_its_lane_alone() -> None:
    decoder = ScriptedDecoder()
    proposer = draft_model(decoder, slots=2)
    requests = [draft_request(PROMPT, (2,), 3, slot=slot) for slot in range(2)]
    proposer.draft(requests, 2)
    decoder.poisoned = {next(iter(decoder.slots))}

    failed, block = proposer.draft(requests, 2)

    assert isinstance(failed, InvalidLogits)
    assert recomputed(PROMPT, (2,), 3) == block.tokens


def test_lane_takes_a_slot_when_it_first_drafts_and_gives_it_back() -> None:
    decoder = ScriptedDecoder()
    proposer = draft_model(decoder, slots=2)
    assert {} == decoder.slots

    block_of(proposer, PROMPT, (2,), 2, slot=1)
    assert 1 == len(decoder.slots)

    proposer.close(1)
    proposer.close(1)
    proposer.close(0)
    assert {} == decoder.slots


def test_reopened_slot_begins_with_an_empty_cache() -> None:
    decoder = ScriptedDecoder()
    proposer = draft_model(decoder)
    block_of(proposer, PROMPT, (2,), 2)

    proposer.open(0, (9, 9))

    assert recomputed((9, 9), (1,), 3) == block_of(proposer, (9, 9), (1,), 3).tokens
    assert 1 == len(decoder.slots)


def test_lane_that_is_not_open_is_that_lanes_error() -> None:
    proposer = draft_model(ScriptedDecoder())

    drawn = proposer.draft([draft_request(PROMPT, (2,), 2, slot=7)], 1)
    done = proposer.commit([commit_of(PROMPT, (2,), (2,), slot=7)])

    assert [UnknownSlot, UnknownSlot] == [type(result) for result in (*drawn, *done)]


def test_draft_with_fewer_slots_than_the_target_is_refused() -> None:
    with pytest.raises(IncompatibleDraft, match="max_slots"):
        draft_model(ScriptedDecoder(max_slots=2), slots=3)


def adaptive_widths(rounds: int, *, accept: bool, costs: DraftCosts = COSTS) -> list[int]:
    """Return the widths of a lane whose blocks are all accepted, or all rejected."""
    proposer = draft_model(ScriptedDecoder(), costs=costs)
    generated: tuple[int, ...] = (2,)
    widths = []
    for _ in range(rounds):
        (drawn,) = proposer.draft([draft_request(PROMPT, generated, 8, fixed=False)], 1)
        tokens = () if drawn is None else drawn.tokens
        widths.append(len(tokens))
        accepted = len(tokens) if accept else 0
        tail = 9 if accept or not tokens else (tokens[0] + 1) % 11
        committed = (*tokens[:accepted], tail)
        generated += committed
        state = None if drawn is None else drawn.state
        proposer.commit([commit_of(PROMPT, generated, committed, state=state, accepted=accepted)])
    return widths


def test_adaptive_width_grows_while_blocks_are_accepted() -> None:
    widths = adaptive_widths(30, accept=True)

    assert widths == sorted(widths)
    assert widths[0] < 8 == widths[-1]


def test_adaptive_width_falls_to_rare_probes_while_blocks_are_rejected() -> None:
    widths = adaptive_widths(120, accept=False)

    assert {0, 1} == set(widths[30:])
    assert 1 <= sum(widths[30:]) <= 3


def test_draft_as_dear_as_its_target_is_never_tried() -> None:
    """Not even full acceptance would pay, so there are no probes either."""
    costs = DraftCosts(COSTS.target, COSTS.target)

    assert [0] * 100 == adaptive_widths(100, accept=True, costs=costs)


def test_fixed_width_is_met_whatever_was_accepted() -> None:
    proposer = draft_model(ScriptedDecoder())
    generated: tuple[int, ...] = (2,)
    for _ in range(40):
        block = block_of(proposer, PROMPT, generated, 5)
        assert 5 == len(block.proposals)
        committed = ((block.tokens[0] + 1) % 11,)
        generated += committed
        proposer.commit([commit_of(PROMPT, generated, committed, state=block.state)])
