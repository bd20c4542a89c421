"""The scripted proposer: drafts by a rule, and holds its callers to the protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from engines.scripted.device import Device
from engines.scripted.distribution import SparseDistribution
from engines.scripted.fault import FaultPlan, Operation
from engines.scripted.rules import DraftRule
from engines.scripted.sampling import ScriptedSampler
from engines.scripted.target import CacheSeed, seed_of
from service.errors import (
    ConstraintFailed,
    EngineError,
    NothingAllowed,
    OutriderError,
    UnknownSlot,
)
from service.speculation.contract import (
    ComponentTimings,
    DraftBlock,
    DraftRequest,
    History,
    Proposal,
    ProposerCommit,
    ProposerTraits,
    Tokens,
)

Input = TypeVar("Input")
Output = TypeVar("Output")


@dataclass(frozen=True, slots=True)
class DraftState:
    """A proposer's state after a block: the output that it assumes, proposals included."""

    generated: Tokens


@dataclass(frozen=True, slots=True)
class Pace:
    """How a proposer spends time and width.

    `widths` repeat over output positions and bound the blocks of requests
    whose width is not fixed; zero takes a plain step. Drafting a token keeps
    the device's caller busy for `seconds_per_token`.
    """

    widths: tuple[int, ...] = ()
    seconds_per_token: float = 0.0
    device: Device | None = None

    def width(self, request: DraftRequest) -> int:
        """Return how many proposals a request gets at most."""
        if request.fixed_width or not self.widths:
            return request.width
        position = len(request.history.generated)
        return min(request.width, self.widths[position % len(self.widths)])

    def spend(self, tokens: int) -> float:
        """Let the time of drafting pass, and return its seconds."""
        seconds = tokens * self.seconds_per_token
        if self.device is not None and tokens:
            self.device.occupy(seconds)
        return seconds


class ScriptedProposer:
    """Drafts by a rule for each lane alone.

    It follows every commit and refuses, as that lane's error, a call that does
    not continue what it was told before, or whose seed is not of the cache that
    such a history leaves behind.
    """

    def __init__(
        self,
        traits: ProposerTraits,
        rule: DraftRule,
        pace: Pace | None = None,
        faults: FaultPlan | None = None,
    ) -> None:
        self._traits = traits
        self._rule = rule
        self._pace = pace or Pace()
        self._faults = faults or FaultPlan()
        self._lanes: dict[int, History] = {}
        self._timings = ComponentTimings()

    @property
    def traits(self) -> ProposerTraits:
        """Return the traits that the proposer was made with."""
        return self._traits

    @property
    def open_slots(self) -> frozenset[int]:
        """Return the slots whose lanes are open."""
        return frozenset(self._lanes)

    def open(self, slot: int, prompt: Tokens) -> None:
        """Begin a lane that has generated nothing.

        Raises:
            EngineError: the slot's last lane was never closed.
        """
        self._faults.strike(Operation.PROPOSER_OPEN, slot)
        if slot in self._lanes:
            raise EngineError(f"proposer lane {slot} is open already")
        self._lanes[slot] = History(prompt, ())

    def close(self, slot: int) -> None:
        """Forget a lane."""
        self._lanes.pop(slot, None)

    def draft(
        self, requests: Sequence[DraftRequest], pass_lanes: int
    ) -> Sequence[DraftBlock | OutriderError | None]:
        """Draft each lane's block."""
        del pass_lanes
        self._faults.strike(Operation.DRAFT)
        drafts = [_result(self._draft_lane, request) for request in requests]
        longest = max((len(d.proposals) for d in drafts if isinstance(d, DraftBlock)), default=0)
        self._timings = ComponentTimings(draft_assistant=self._pace.spend(longest))
        return drafts

    def take_timings(self) -> ComponentTimings:
        """Return the scripted seconds of the last draft pass."""
        return self._timings

    def commit(self, lanes: Sequence[ProposerCommit]) -> Sequence[OutriderError | None]:
        """Follow each lane's committed tokens."""
        self._faults.strike(Operation.PROPOSER_COMMIT)
        return [_result(self._commit_lane, lane) for lane in lanes]

    def _draft_lane(self, request: DraftRequest) -> DraftBlock | None:
        self._faults.strike_lane(Operation.DRAFT, request.slot)
        self._require_continuation(request)
        proposals: list[Proposal] = []
        generated = request.history.generated
        for _ in range(self._pace.width(request)):
            proposal = self._propose(request, generated)
            if proposal is None:
                break
            proposals.append(proposal)
            generated = (*generated, proposal.token)
            if proposal.token in request.eos_token_ids:
                break
            if request.sampler.prefix_is_complete(generated):
                break
        return DraftBlock(DraftState(generated), tuple(proposals)) if proposals else None

    def _propose(self, request: DraftRequest, generated: Tokens) -> Proposal | None:
        if not isinstance(request.sampler, ScriptedSampler):
            name = type(request.sampler).__name__
            raise EngineError(f"a scripted proposer cannot draft under {name}")
        history = History(request.history.prompt, generated)
        distribution = self._believed(history, request.sampler)
        if distribution is None:
            return None
        randomness = request.randomness
        draw = None if randomness is None else randomness.at(len(generated))
        return Proposal(distribution.sample(draw), distribution)

    def _believed(self, history: History, sampler: ScriptedSampler) -> SparseDistribution | None:
        """Return the rule's distribution; None where nothing may follow, as behind a bad guess."""
        try:
            return self._rule.distribution(history, sampler)
        except (NothingAllowed, ConstraintFailed):
            return None

    def _commit_lane(self, lane: ProposerCommit) -> None:
        self._faults.strike_lane(Operation.PROPOSER_COMMIT, lane.slot)
        known = self._lane(lane.slot)
        followed = History(known.prompt, (*known.generated, *lane.committed))
        if lane.history != followed:
            raise EngineError(f"proposer lane {lane.slot} was told of another history")
        if not 0 <= lane.accepted <= len(lane.committed):
            raise EngineError(f"proposer lane {lane.slot} accepted more than was committed")
        _require_seed(lane.slot, lane.seed, followed)
        self._lanes[lane.slot] = followed

    def _require_continuation(self, request: DraftRequest) -> None:
        known = self._lane(request.slot)
        _require_seed(request.slot, request.seed, known)
        state = request.state
        if state is None:
            continues = request.history == known
        elif isinstance(state, DraftState):
            continues = request.history == History(known.prompt, state.generated)
        else:
            continues = False
        if not continues:
            raise EngineError(f"proposer lane {request.slot} cannot continue that history")

    def _lane(self, slot: int) -> History:
        if slot not in self._lanes:
            raise UnknownSlot(slot)
        return self._lanes[slot]


def _result(work: Callable[[Input], Output], lane: Input) -> Output | OutriderError:
    """Return what the work returns or raises."""
    try:
        return work(lane)
    except OutriderError as error:
        return error


def _require_seed(slot: int, seed: object, history: History) -> None:
    """Refuse a scripted target's seed that does not belong to all but the last token."""
    cached = (*history.prompt, *history.generated[:-1])
    if isinstance(seed, CacheSeed) and seed != seed_of(cached):
        raise EngineError(f"proposer lane {slot} was given the seed of another cache")
