"""One block drafted and judged through the contract, without a table."""

import pytest

from service.errors import EmptyProposalBlock, NothingAllowed
from service.generation.randomness import AddressedRandomness
from service.generation.sequence import GenerationSequence
from service.speculation.contract import (
    CommitInput,
    ComponentTimings,
    DraftBlock,
    DraftRequest,
    History,
    PrefillInput,
    VerificationInput,
)
from service.speculation.options import SchedulerOptions
from service.speculation.resolution import OutputState, resolve_block, resolve_single
from service.speculation.round import TokenSource
from tests.service.speculation.doubles import (
    Bench,
    FixedStream,
    PlainSampler,
    RecordingText,
    ScriptedProposer,
    ScriptedTarget,
)

SAMPLER = PlainSampler()


def output_state(*tokens):
    sequence = GenerationSequence(8)
    for token in tokens:
        sequence, _ = sequence.commit(token)
    return OutputState(SAMPLER, sequence, RecordingText(), FixedStream(b""))


def draft_request(width, generated=(5,)):
    return DraftRequest(
        slot=0,
        seed=None,
        state=None,
        history=History((4,), generated),
        width=width,
        fixed_width=False,
        sampler=SAMPLER,
        randomness=AddressedRandomness(b"draft"),
        eos_token_ids=frozenset(),
    )


def test_engine_prefills_verifies_and_commits_without_a_tensor_runtime():
    target = ScriptedTarget()
    slot = target.open()
    prefill = PrefillInput(slot, 0, (4, 5), True, History((4, 5), ()), SAMPLER)
    target.prefill([prefill]).completion.wait()
    checkpoint = target.checkpoint(slot)
    verification = VerificationInput(slot, checkpoint, (5, 6), History((4, 5), (5,)), SAMPLER)
    submission = target.submit([verification])
    submission.completion.wait()
    (result,) = target.commit(submission.output, [CommitInput(0, slot, checkpoint, 1)])
    assert target.caches[slot] == [4, 5, 5]
    assert result.replayed_tokens == 0


def test_block_is_drafted_accepted_once_and_then_replaced_on_copies():
    target = ScriptedTarget()
    slot = target.open((4, 5))
    (block,) = ScriptedProposer().draft([draft_request(2)], 1)
    assert block.tokens == (1, 1)

    verification = VerificationInput(slot, 2, (5, 1, 1), History((4,), (5,)), SAMPLER)
    submission = target.submit([verification])
    submission.completion.wait()
    state = output_state(5)
    resolved = resolve_block(submission.output.rows(0), block, state)
    assert resolved.committed.accepted == 1
    assert resolved.committed.judged == 2
    assert [commit.token_id for commit in resolved.committed.tokens] == [1, 0]
    assert resolved.verified_inputs == 2
    assert resolved.state.sampler.committed == (1, 0)
    assert resolved.state.sequence.tokens == (5, 1, 0)
    assert resolved.state.text.tokens == (1, 0)
    assert resolved.state.stream.draws == 3
    assert resolved.state.sequence.finish_reason is None
    assert state.sampler.committed == ()
    assert state.text.tokens == ()
    assert state.stream.draws == 0


def test_full_acceptance_adds_a_bonus_that_stays_uncached():
    target = ScriptedTarget(full_acceptance=True)
    slot = target.open((4, 5))
    (block,) = ScriptedProposer().draft([draft_request(2)], 1)
    verification = VerificationInput(slot, 2, (5, 1, 1), History((4,), (5,)), SAMPLER)
    submission = target.submit([verification])
    submission.completion.wait()
    resolved = resolve_block(submission.output.rows(0), block, output_state(5))
    assert resolved.bonus == 1
    assert resolved.verified_inputs == 3
    assert resolved.committed.sources[-1] is TokenSource.BONUS


class RowsUpTo:
    """The rows of another pass, of which those from `limit` on allow nothing."""

    def __init__(self, rows, limit):
        self.rows, self.limit = rows, limit

    def distribution(self, row, sampler):
        if row >= self.limit:
            raise NothingAllowed(row, ("settings.constraint",))
        return self.rows.distribution(row, sampler)


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_block_ends_before_a_row_that_allows_nothing(limit):
    """What was accepted before is kept, as plain decoding would have delivered it."""
    target = ScriptedTarget(full_acceptance=True)
    slot = target.open((4, 5))
    (block,) = ScriptedProposer().draft([draft_request(2)], 1)
    verification = VerificationInput(slot, 2, (5, 1, 1), History((4,), (5,)), SAMPLER)
    submission = target.submit([verification])
    submission.completion.wait()
    rows = RowsUpTo(submission.output.rows(0), limit)
    if limit == 0:
        with pytest.raises(NothingAllowed):
            resolve_block(rows, block, output_state(5))
        return
    resolved = resolve_block(rows, block, output_state(5))
    assert resolved.state.sequence.tokens == (5,) + (1,) * limit
    assert resolved.state.stream.draws == limit
    assert (resolved.committed.judged, resolved.committed.accepted) == (limit, limit)
    assert resolved.verified_inputs == limit
    assert resolved.bonus is None


def test_plain_step_keeps_one_input_and_marks_its_token():
    target = ScriptedTarget()
    slot = target.open((4, 5))
    submission = target.submit([VerificationInput(slot, 2, (5,), History((4,), (5,)), SAMPLER)])
    submission.completion.wait()
    resolved = resolve_single(submission.output.rows(0), output_state(5), TokenSource.PLAIN, 1)
    assert resolved.verified_inputs == 1
    assert resolved.committed.sources == (TokenSource.PLAIN,)
    assert resolved.committed.judged == 0


def test_block_without_proposals_cannot_be_made():
    with pytest.raises(EmptyProposalBlock):
        DraftBlock("state", ())


def test_draft_timings_reach_only_the_lanes_that_collect_them():
    bench = Bench(options=SchedulerOptions().with_lookahead(enabled=False))
    bench.proposer.timings = ComponentTimings(draft_assistant=0.25)
    collecting = bench.join(max_tokens=6, component_timings=True)
    other = bench.join(max_tokens=6)
    while collecting.statistics.draft_tokens == 0:
        bench.step()
    assert collecting.statistics.component_timings_collected
    assert collecting.statistics.draft_assistant_time == 0.25
    assert other.statistics.draft_assistant_time == 0.0
