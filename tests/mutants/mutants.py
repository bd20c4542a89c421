"""Small wrong changes to the source, each with the test that must notice it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of one place in one file, and the test that fails where it was made."""

    name: str
    path: str
    old: str
    new: str
    killer: str

    def apply(self, tree: Path) -> None:
        """Make the change; the old text must stand in the file exactly once."""
        file = tree / self.path
        source = file.read_text(encoding="utf-8")
        assert 1 == source.count(self.old), f"{self.name}: {self.path} has changed"
        file.write_text(source.replace(self.old, self.new), encoding="utf-8")


_SETTLED = """\
    _commit(target, output, entries)
    _commit_proposers(entries)
    _roll_back(target, entries)
    output.release()
    _each(entries, _publish)
"""
_PUBLISHED_FIRST = """\
    _each(entries, _publish)
    _commit(target, output, entries)
    _commit_proposers(entries)
    _roll_back(target, entries)
    output.release()
"""

_SPECULATION = "tests/service/speculation"
_COMMIT_PLAN = (
    f"{_SPECULATION}/test_round.py::test_commit_plan_keeps_the_trailing_token_out_of_the_cache"
)
_COMMIT_ORDER = (
    f"{_SPECULATION}/test_table.py::"
    "test_round_commits_before_it_publishes_and_discards_mismatched_lookahead"
)

MUTANTS = (
    Mutant(
        name="acceptance with <=",
        path="service/speculation/policy.py",
        old="if uniform < acceptance:",
        new="if uniform <= acceptance:",
        killer=(
            f"{_SPECULATION}/test_policy.py::"
            "test_draw_of_exactly_zero_never_accepts_an_impossible_token"
        ),
    ),
    Mutant(
        name="softmaxed residual",
        path="engines/sampling/kept.py",
        old="Kept.of_weights(self.ids, excess) if",
        new="Kept.of_weights(self.ids, np.exp(excess)) if",
        killer=(
            "tests/engines/sampling/test_distributions.py::"
            "test_excess_is_divided_by_its_sum_not_softened"
        ),
    ),
    Mutant(
        name="softmaxed residual of the scripted engine",
        path="engines/scripted/distribution.py",
        old="return distribution_of(usable) if usable else None",
        new="return distribution_of(softmax(usable)) if usable else None",
        killer=(
            "tests/engines/scripted/test_distribution.py::"
            "test_excess_is_the_positive_difference_over_its_own_sum"
        ),
    ),
    Mutant(
        name="verified inputs one too few",
        path="service/speculation/round.py",
        old="verified_inputs=self.accepted + (self.tail is not None),",
        new="verified_inputs=self.accepted,",
        killer=_COMMIT_PLAN,
    ),
    Mutant(
        name="verified inputs one too many",
        path="service/speculation/round.py",
        old="verified_inputs=self.accepted + (self.tail is not None),",
        new="verified_inputs=self.accepted + 1 + (self.tail is not None),",
        killer=_COMMIT_PLAN,
    ),
    Mutant(
        name="skipped wait",
        path="service/speculation/settlement.py",
        old="failure = await_completion(",
        new="failure = None and await_completion(",
        killer=_COMMIT_ORDER,
    ),
    Mutant(
        name="publication before the commit",
        path="service/speculation/settlement.py",
        old=_SETTLED,
        new=_PUBLISHED_FIRST,
        killer=_COMMIT_ORDER,
    ),
    Mutant(
        name="slot of unfinished work handed out again",
        path="engines/scripted/cache.py",
        old="if slot.state is SlotState.CLOSED and not slot.writers:",
        new="if slot.state is SlotState.CLOSED:",
        killer=(
            "tests/contract/test_target_completion.py::"
            "test_quarantined_slot_is_not_reused_before_its_completion"
        ),
    ),
    Mutant(
        name="slot given back while its lane's pass is in flight",
        path="service/speculation/lane.py",
        old="submission_retained=flight_of(self.phase) is not None",
        new="submission_retained=False",
        killer=(
            "tests/service/runtime/test_engine.py::"
            "test_client_gone_while_a_pass_is_in_flight_frees_its_slot_with_that_pass"
        ),
    ),
    Mutant(
        name="slot of unknown contents given back",
        path="service/runtime/engine.py",
        old="if terminal.slot_is_reusable:",
        new="if terminal.slot >= 0:",
        killer=(
            "tests/service/runtime/test_engine.py::"
            "test_slot_that_cannot_be_restored_is_never_used_again"
        ),
    ),
    Mutant(
        name="penalties that ignore the drafted tokens of the block",
        path="engines/sampling/rows.py",
        old="base.generated + self._span.proposals[:before]",
        new="base.generated",
        killer=(
            "tests/engines/sampling/test_rows.py::"
            "test_row_sees_the_proposals_before_it_and_no_others"
        ),
    ),
    Mutant(
        name="mask taken at the start of the block for all its rows",
        path="engines/sampling/following.py",
        old="for token in generated[self.tokens :]:",
        new="for token in generated[self.tokens : self.tokens]:",
        killer=(
            "tests/engines/sampling/test_permission.py::"
            "test_constraint_masks_each_row_at_its_own_history"
        ),
    ),
    Mutant(
        name="coin of XTC that falls otherwise for the draft",
        path="engines/sampling/xtc.py",
        old="if self.coins.at(position) >= self.probability:",
        new="if self.coins.at(kept.ids.size) >= self.probability:",
        killer=(
            "tests/engines/sampling/test_xtc.py::"
            "test_coin_of_a_position_is_the_same_for_draft_and_target"
        ),
    ),
    Mutant(
        name="draft that counts no token of its own block",
        path="engines/proposers/draft_model/turn.py",
        old="distribution = process(row, request.sampler, history)",
        new="distribution = process(row, request.sampler, request.history)",
        killer=(
            "tests/engines/proposers/draft_model/test_own_weights.py::"
            "test_draft_with_the_targets_weights_is_accepted_whole"
        ),
    ),
    Mutant(
        name="least tokens looked at once for several rows",
        path="engines/sampling/permission.py",
        old="fixed = self._fixed(len(generated))",
        new="fixed = self._fixed(len(generated) // 4 * 4)",
        killer=(
            "tests/engines/sampling/test_permission.py::"
            "test_no_end_comes_before_the_least_number_of_tokens"
        ),
    ),
    Mutant(
        name="logprob of the block's first row for every token",
        path="service/speculation/resolution.py",
        old="            row = len(self.commits)\n",
        new="            row = 0\n",
        killer="tests/cases/test_logprobs.py::test_b25_greedy_values_are_those_of_plain_decoding",
    ),
)
