"""The proposer: lanes share each step of a draft pass, and one width that pays."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic

from engines.proposers.draft_model.decoder import DraftDecoder, Input, MakeInput
from engines.proposers.draft_model.lane import DraftLane
from engines.proposers.draft_model.turn import DraftTurn, TurnLimits
from service.errors import IncompatibleDraft, OutriderError, UnknownSlot
from service.speculation.capability import DraftSource
from service.speculation.contract import (
    ComponentTimings,
    DraftBlock,
    DraftRequest,
    ProposerCommit,
    ProposerTraits,
    Tokens,
)
from service.speculation.cost import CostCurve
from service.speculation.width import AcceptanceEstimate, paying_width


@dataclass(frozen=True, slots=True)
class DraftCosts:
    """The measured passes of the target that verifies and of the draft itself."""

    target: CostCurve
    draft: CostCurve


@dataclass(frozen=True, slots=True)
class DraftSettings:
    """What a draft must serve: the target's slots and its tokenizer's vocabulary.

    `chunk_tokens` bounds what one lane is fed of its backlog in a pass.
    """

    max_slots: int
    vocabulary_size: int
    name: str = "draft_model"
    max_proposals: int = 8
    chunk_tokens: int = 128


class DraftModel(Generic[Input]):
    """Drafts with a decoder of its own, processed by each lane's own sampler.

    A lane takes a slot when it first drafts. Until its backlog (the prompt, or
    what plain steps committed) is fed, it proposes nothing; nor does it beyond
    the draft's context, or where a token is beyond its vocabulary.
    """

    def __init__(
        self,
        decoder: DraftDecoder[Input],
        make_input: MakeInput[Input],
        costs: DraftCosts,
        settings: DraftSettings,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._clock = clock
        self._seconds = 0.0
        if decoder.max_slots < settings.max_slots:
            raise IncompatibleDraft("max_slots", settings.max_slots, decoder.max_slots)
        self.traits = ProposerTraits(
            name=settings.name,
            source=DraftSource.SEPARATE,
            max_proposals=settings.max_proposals,
            has_distribution=True,
            can_branch=True,
        )
        self._decoder = decoder
        self._make_input = make_input
        self._limits = TurnLimits(settings.chunk_tokens, settings.vocabulary_size)
        self._lanes: dict[int, DraftLane | None] = {}
        self._costs = lru_cache(
            lambda lanes, drafting: costs.target.by_width(
                lanes, settings.max_proposals, costs.draft.milliseconds(drafting, 1)
            )
        )

    def open(self, slot: int, prompt: Tokens) -> None:
        del prompt
        self.close(slot)
        self._lanes[slot] = None

    def close(self, slot: int) -> None:
        lane = self._lanes.pop(slot, None)
        if lane is not None:
            self._decoder.close(lane.slot)

    def draft(
        self, requests: Sequence[DraftRequest], pass_lanes: int
    ) -> Sequence[DraftBlock | OutriderError | None]:
        turns = [self._begin(request) for request in requests]
        live = [turn for turn in turns if isinstance(turn, DraftTurn)]
        self._adapt_widths(live, max(pass_lanes, len(requests)))
        active = [turn for turn in live if turn.width]
        started = self._clock()
        while active:
            self._step(active)
            active = [turn for turn in active if not turn.is_done]
        self._seconds = self._clock() - started
        return [turn.result if isinstance(turn, DraftTurn) else turn for turn in turns]

    def take_timings(self) -> ComponentTimings:
        """Return the seconds that the draft's decoder and its sampling took."""
        return ComponentTimings(draft_assistant=self._seconds)

    def commit(self, lanes: Sequence[ProposerCommit]) -> Sequence[OutriderError | None]:
        return [self._observe(lane) for lane in lanes]

    def _begin(self, request: DraftRequest) -> DraftTurn | OutriderError | None:
        """Rewind a lane to its history; None where the draft has no room for a proposal."""
        length = len(request.history.prompt) + len(request.history.generated)
        room = self._decoder.max_context - length + 1
        width = min(request.width, room, self.traits.max_proposals)
        if width <= 0:
            return None
        try:
            lane = self._lane(request.slot)
            kept, pending = lane.rewind(request.history, committed=request.state is None)
            self._decoder.truncate(lane.slot, kept)
        except OutriderError as error:
            return error
        if max(pending) >= self._decoder.vocabulary_size:
            return None
        return DraftTurn(lane, request, pending, width, self._limits)

    def _lane(self, slot: int) -> DraftLane:
        if slot not in self._lanes:
            raise UnknownSlot(slot)
        lane = self._lanes[slot]
        if lane is None:
            estimate = AcceptanceEstimate.fresh(self.traits.max_proposals)
            lane = self._lanes[slot] = DraftLane(self._decoder.open(), estimate)
        return lane

    def _adapt_widths(self, turns: Sequence[DraftTurn], lanes: int) -> None:
        """Cut the width of adaptive lanes to what pays, given what fixed lanes propose anyway."""
        costs = self._costs(lanes, len(turns))
        outlooks = [turn.lane.estimate.outlook(turn.width) for turn in turns]
        floor = max((turn.width for turn in turns if turn.request.fixed_width), default=0)
        paying = paying_width(outlooks, costs, lanes, floor)
        # Where not even full acceptance would pay, there is nothing to find out.
        may_probe = paying_width([(1.0,) * turn.width for turn in turns], costs, lanes) > 0
        for turn in turns:
            estimate = turn.lane.estimate
            if not turn.request.fixed_width:
                turn.width = min(turn.width, paying) or int(may_probe and estimate.wants_probe)
                turn.lane.estimate = estimate if turn.width else estimate.skip()

    def _step(self, turns: Sequence[DraftTurn]) -> None:
        """Feed every lane its next tokens; where that fails, lane by lane to find which."""
        inputs = [
            self._make_input(turn.lane.slot, len(turn.lane.cached), turn.fed, turn.wanted)
            for turn in turns
        ]
        try:
            rows = self._decoder.forward(inputs)
        except OutriderError as error:
            if len(turns) == 1:
                turns[0].fail(error)
            else:
                for turn in turns:
                    self._step([turn])
            return
        for turn, logits in zip(turns, rows, strict=True):
            turn.take(logits)

    def _observe(self, commit: ProposerCommit) -> OutriderError | None:
        if commit.slot not in self._lanes:
            return UnknownSlot(commit.slot)
        lane, end = self._lanes[commit.slot], commit.state
        if lane is not None and isinstance(end, int):
            proposed = end - (len(commit.history.generated) - len(commit.committed))
            lane.estimate = lane.estimate.observe(proposed, commit.accepted)
        return None
