"""The fair schedule: a pure choice of the next action among the lanes that hold a slot.

One pass carries many lanes; limits count passes. With one lane a pass and no
prefill this is the schedule of eredu-core, action for action.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from service.errors import StalledSchedule
from service.speculation.lifecycle import TERMINAL, RequestStatus
from service.speculation.options import SchedulerOptions


@dataclass(frozen=True, slots=True)
class Candidate:
    """What the schedule may know of one lane.

    `rows` is what the lane adds to its next target pass (leading input and
    proposals, or the next prompt chunk). Lanes of equal `proposer` may share a
    draft pass, and None joins any. `pass_id` names the pass in flight;
    `pass_ended` says that it completed or outlived its deadline. `since` is
    the turn that last concerned the lane: those left waiting come first.
    """

    status: RequestStatus
    rows: int = 1
    proposer: int | None = None
    may_draft_ahead: bool = False
    pass_id: int | None = None
    pass_ended: bool = False
    since: int = 0


@dataclass(frozen=True, slots=True)
class Prefill:
    """Submit the next prompt chunk of these lanes."""

    lanes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """Draft canonical blocks; `cross_request` when target work of others is in flight."""

    lanes: tuple[int, ...]
    cross_request: bool


@dataclass(frozen=True, slots=True)
class DraftOptimistic:
    """Draft ahead of the verification that these lanes share."""

    lanes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Verify:
    """Submit the drafted blocks and plain steps of these lanes as one pass."""

    lanes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Resolve:
    """Settle one pass that has completed or outlived its deadline."""

    pass_id: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing can be done before a pass in flight ends."""


Action = Prefill | Draft | DraftOptimistic | Verify | Resolve | Wait


@dataclass(frozen=True, slots=True)
class PassShape:
    """How much one target pass may carry; padded rows are lanes times the widest lane."""

    lanes: int
    rows: int

    def pack(self, order: Iterable[int], rows: Sequence[int]) -> tuple[int, ...]:
        """Take lanes in order while the padded pass fits; the first one always does."""
        chosen: list[int] = []
        widest = 0
        for index in order:
            width = max(widest, rows[index])
            if chosen and (len(chosen) == self.lanes or (len(chosen) + 1) * width > self.rows):
                continue
            chosen.append(index)
            widest = width
        return tuple(chosen)


class Schedule:
    """Chooses actions; its only state is a round-robin cursor and how passes have formed."""

    def __init__(
        self, options: SchedulerOptions, shape: PassShape, *, can_overlap: bool = False
    ) -> None:
        self.options = options.validate()
        self._shape = shape
        self._can_overlap = can_overlap
        self._cursor = 0
        self._prefilled_last = False
        self._partial_passes = 0

    def next_action(self, candidates: Sequence[Candidate]) -> Action | None:
        """Return the next fair action, None when every lane is terminal.

        Raises:
            StalledSchedule: active lanes expose no legal action.
        """
        if all(candidate.status in TERMINAL for candidate in candidates):
            return None
        in_flight = {c.pass_id for c in candidates if c.pass_id is not None}
        if len(in_flight) < self.options.max_in_flight_verifications:
            action = self._target_action(candidates)
            if action is not None:
                return action
        if in_flight:
            return self._beside_target(candidates)
        lanes = self._draftable(candidates)
        if lanes:
            return Draft(lanes, cross_request=False)
        raise StalledSchedule

    def _target_action(self, candidates: Sequence[Candidate]) -> Action | None:
        """Choose a pass for an idle target: prefill and verification take turns."""
        drafted = _indices(candidates, _is_drafted)
        ready = _indices(candidates, _is_ready)
        prefilling = _indices(candidates, _is_prefilling)
        if prefilling and not (self._prefilled_last and (drafted or ready)):
            self._prefilled_last = True
            return Prefill(self._select_prefill(candidates, prefilling))
        if drafted and not self._holds_for(ready, drafted):
            self._prefilled_last = False
            return self._verify(candidates, drafted, ready)
        return None

    def _holds_for(self, ready: Sequence[int], drafted: Sequence[int]) -> bool:
        """Whether drafted lanes wait until the ready ones are drafted too."""
        if not ready or len(drafted) >= self._shape.lanes:
            return False
        return not self._can_overlap or self._partial_passes >= self.options.merge_after_passes

    def _verify(
        self, candidates: Sequence[Candidate], drafted: Sequence[int], ready: Sequence[int]
    ) -> Verify:
        lanes = self._select(candidates, drafted, self._shape)
        elsewhere = len(ready) + sum(c.pass_id is not None for c in candidates)
        whole = len(lanes) == len(drafted) and not elsewhere
        self._partial_passes = 0 if whole or self._held() else self._partial_passes + 1
        return Verify(lanes)

    def _held(self) -> bool:
        """Whether this pass was held back to merge groups: then counting starts over."""
        return self._partial_passes >= self.options.merge_after_passes

    def _beside_target(self, candidates: Sequence[Candidate]) -> Action:
        """Choose what to do while the target is busy."""
        if self.options.lookahead_blocks and self._may_branch(candidates):
            ahead = self._same_pass_and_proposer(candidates)
            if ahead:
                return DraftOptimistic(ahead)
        lanes = self._draftable(candidates)
        if lanes:
            return Draft(lanes, cross_request=True)
        ended = sorted({c.pass_id for c in candidates if c.pass_id is not None and c.pass_ended})
        return Resolve(ended[0]) if ended else Wait()

    def _may_branch(self, candidates: Sequence[Candidate]) -> bool:
        branched = {
            c.pass_id for c in candidates if c.status is RequestStatus.OPTIMISTIC_DRAFT_READY
        }
        return len(branched) < self.options.max_optimistic_branches

    def _same_pass_and_proposer(self, candidates: Sequence[Candidate]) -> tuple[int, ...]:
        eligible = _indices(candidates, lambda c: c.may_draft_ahead)
        if not eligible:
            return ()
        first = candidates[self._order(candidates, eligible)[0]]
        group = [
            index
            for index in eligible
            if candidates[index].pass_id == first.pass_id
            and candidates[index].proposer == first.proposer
        ]
        return self._select(candidates, group, PassShape(len(group), len(group)), rows=1)

    def _draftable(self, candidates: Sequence[Candidate]) -> tuple[int, ...]:
        """Choose ready lanes that share a proposer; plain lanes join any draft pass."""
        ready = _indices(candidates, _is_ready)
        if not ready:
            return ()
        order = self._order(candidates, ready)
        named = [candidates[i].proposer for i in order if candidates[i].proposer is not None]
        wanted = {None, named[0]} if named else {None}
        group = [index for index in ready if candidates[index].proposer in wanted]
        lanes = self._shape.lanes
        return self._select(candidates, group, PassShape(lanes, lanes), rows=1)

    def _select_prefill(
        self, candidates: Sequence[Candidate], prefilling: Sequence[int]
    ) -> tuple[int, ...]:
        budget = min(self._shape.rows, self.options.prefill_chunk_tokens)
        return self._select(candidates, prefilling, PassShape(self._shape.lanes, budget))

    def _select(
        self,
        candidates: Sequence[Candidate],
        among: Sequence[int],
        shape: PassShape,
        rows: int | None = None,
    ) -> tuple[int, ...]:
        """Pack lanes from the cursor on; move it to the first one left out, or past the last."""
        order = self._order(candidates, among)
        widths = [candidate.rows if rows is None else rows for candidate in candidates]
        chosen = shape.pack(order, widths)
        left_out = next((index for index in order if index not in chosen), None)
        following = chosen[-1] + 1 if left_out is None else left_out
        self._cursor = following % len(candidates)
        return chosen

    def _order(self, candidates: Sequence[Candidate], among: Sequence[int]) -> list[int]:
        """Return the lanes that waited longest first, equals in round-robin order.

        A cursor alone would let lanes that keep joining overtake one that is
        left out: it moves with every kind of action.
        """
        size, cursor = len(candidates), self._cursor
        return sorted(among, key=lambda index: (candidates[index].since, (index - cursor) % size))


def _indices(candidates: Sequence[Candidate], predicate: Callable[[Candidate], bool]) -> list[int]:
    return [index for index, candidate in enumerate(candidates) if predicate(candidate)]


def _is_drafted(candidate: Candidate) -> bool:
    return candidate.status is RequestStatus.READY_TO_SUBMIT_VERIFICATION


def _is_ready(candidate: Candidate) -> bool:
    return candidate.status is RequestStatus.READY_TO_DRAFT


def _is_prefilling(candidate: Candidate) -> bool:
    return candidate.status is RequestStatus.PREFILL and candidate.pass_id is None
