"""Draft passes: canonical blocks for ready lanes, and branches ahead of a verification."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from service.errors import OutriderError, ProposalCapacityExceeded
from service.speculation.contract import (
    DraftBlock,
    DraftRequest,
    History,
    Proposer,
    Tokens,
)
from service.speculation.lane import Clock, Lane, as_outrider_error
from service.speculation.observer import LifecycleStage
from service.speculation.phase import (
    Completed,
    Drafted,
    DraftedAhead,
    DraftingAhead,
    Flight,
    InFlight,
    ReadyToDraft,
)
from service.speculation.reuse import OptimisticBranch

Drawn = DraftBlock | OutriderError | None


def draft_lanes(lanes: Sequence[Lane], pass_lanes: int) -> int:
    """Draft for ready lanes that share one proposer (or have none); count those that drew.

    A lane's failure ends that lane. A lane for which nothing is proposed takes
    a plain step.
    """
    wanted: list[tuple[Lane, ReadyToDraft, DraftRequest]] = []
    for lane in lanes:
        request = _canonical_request(lane)
        if request is not None:
            wanted.append(request)
    if not wanted:
        return 0
    drawn = _draw([(lane, request) for lane, _, request in wanted], pass_lanes)
    pairs = zip(wanted, drawn, strict=True)
    return sum(_install_block(*one, result) for one, result in pairs)


def _canonical_request(lane: Lane) -> tuple[Lane, ReadyToDraft, DraftRequest] | None:
    """Return what a ready lane asks of its proposer, or settle it without one."""
    phase = lane.phase
    assert isinstance(phase, ReadyToDraft)
    try:
        lane.observe(LifecycleStage.EXECUTION)
        if lane.state.sequence.remaining == 0:
            lane.enter(Completed())
            return None
        request = _extension(lane, phase)
    except Exception as error:  # noqa: BLE001 - isolation: any fault is this lane's
        lane.fail(error)
        return None
    if request is None:
        lane.enter(Drafted(phase.seed, phase.block))
        return None
    return lane, phase, request


def _extension(lane: Lane, phase: ReadyToDraft) -> DraftRequest | None:
    """Ask for as many proposals as the block may still grow by, None for none."""
    capacity = lane.max_proposals
    held: Tokens = () if phase.block is None else phase.block.tokens
    if len(held) > capacity:
        raise ProposalCapacityExceeded(len(held), capacity)
    generated = lane.state.sequence.tokens + held
    if len(held) == capacity or _ends(lane, held, generated):
        return None
    return _request(lane, phase.seed, phase.block, generated, capacity - len(held))


def _ends(lane: Lane, block: Tokens, generated: Tokens) -> bool:
    """Whether nothing can follow a block that is already held."""
    if not block:
        return False
    ends = block[-1] in lane.request.config.eos_token_ids
    return ends or lane.state.sampler.prefix_is_complete(generated)


def _request(
    lane: Lane, seed: object, block: DraftBlock | None, generated: Tokens, width: int
) -> DraftRequest:
    request = lane.request
    return DraftRequest(
        slot=request.slot,
        seed=seed,
        state=None if block is None else block.state,
        history=History(request.prompt, generated),
        width=width,
        fixed_width=request.config.fixed_width,
        sampler=lane.state.sampler,
        randomness=request.randomness.draft,
        eos_token_ids=request.config.eos_token_ids,
    )


def _draw(wanted: Sequence[tuple[Lane, DraftRequest]], pass_lanes: int) -> Sequence[Drawn]:
    """Run one draft pass; a fault of the whole pass is each lane's error."""
    requests = [request for _, request in wanted]
    proposer = wanted[0][0].request.proposer
    assert proposer is not None
    try:
        drawn = proposer.draft(requests, pass_lanes)
        _collect_timings(proposer, [lane for lane, _ in wanted])
    except Exception as error:  # noqa: BLE001 - isolation: the pass's lanes fail, no others
        return [as_outrider_error(error)] * len(requests)
    return [_bounded(result, request) for result, request in zip(drawn, requests, strict=True)]


def _collect_timings(proposer: Proposer, lanes: Sequence[Lane]) -> None:
    """Give each lane that collects them the seconds of the draft pass that it shared."""
    collecting = [lane for lane in lanes if lane.request.component_timings]
    timings = proposer.take_timings() if collecting else None
    for lane in collecting:
        lane.statistics = lane.statistics.with_timings(timings)


def _bounded(drawn: Drawn, request: DraftRequest) -> Drawn:
    """Refuse a block that is wider than was asked for."""
    if isinstance(drawn, DraftBlock) and len(drawn.proposals) > request.width:
        return ProposalCapacityExceeded(len(drawn.proposals), request.width)
    return drawn


def _install_block(lane: Lane, phase: ReadyToDraft, request: DraftRequest, drawn: Drawn) -> bool:
    """Give a lane its block; return whether anything was drawn."""
    del request
    if isinstance(drawn, OutriderError):
        lane.fail(drawn)
        return False
    if drawn is None:
        lane.enter(Drafted(phase.seed, phase.block))
        return False
    held = () if phase.block is None else phase.block.proposals
    block = DraftBlock(drawn.state, held + drawn.proposals)
    lane.statistics = lane.statistics.plus(draft_tokens=len(drawn.proposals))
    lane.enter(Drafted(phase.seed, block))
    return True


def may_draft_ahead(lane: Lane) -> bool:
    """Whether a branch may be drafted while the lane's verification is in flight."""
    phase, request = lane.phase, lane.request
    if not isinstance(phase, InFlight) or phase.flight.block is None:
        return False
    block = phase.flight.block.tokens
    assumed = lane.state.sequence.tokens + block
    proposer = request.proposer
    return (
        request.lookahead
        and phase.flight.failure is None
        and proposer is not None
        and proposer.traits.can_branch
        and lane.state.sampler.supports_optimistic_promotion
        and not lane.is_cancelling
        and not lane.statistics.adaptive_lookahead_disabled
        and request.config.max_draft_tokens > 1
        and block[-1] not in request.config.eos_token_ids
        and lane.state.sequence.limit - len(assumed) > 1
        and not lane.state.sampler.prefix_is_complete(assumed)
    )


def draft_ahead(lanes: Sequence[Lane], pass_lanes: int, clock: Clock) -> bool:
    """Draft one branch for each lane in flight; return whether any was retained.

    A failure is kept in the lane's flight: its slot is still being written.
    """
    started = clock()
    wanted: list[tuple[Lane, Flight, DraftRequest]] = []
    for lane in lanes:
        assert isinstance(lane.phase, InFlight)
        flight = lane.phase.flight
        lane.enter(DraftingAhead(flight))
        try:
            lane.observe(LifecycleStage.EXECUTION)
            wanted.append((lane, flight, _branch_request(lane, flight)))
        except Exception as error:  # noqa: BLE001 - isolation: any fault is this lane's
            lane.enter(DraftedAhead(replace(flight, failure=as_outrider_error(error))))
    if not wanted:
        return False
    drawn = _draw([(lane, request) for lane, _, request in wanted], pass_lanes)
    seconds = clock() - started
    for (lane, flight, request), result in zip(wanted, drawn, strict=True):
        _install_branch(lane, flight, request, result)
        lane.statistics = lane.statistics.plus(optimistic_draft_time=seconds)
    return any(isinstance(result, DraftBlock) for result in drawn)


def _branch_request(lane: Lane, flight: Flight) -> DraftRequest:
    block = flight.block
    assert block is not None
    assert lane.request.proposer is not None
    assumed = lane.state.sequence.tokens + block.tokens
    width = min(
        lane.request.config.max_draft_tokens,
        lane.request.proposer.traits.max_proposals,
        lane.state.sequence.limit - len(assumed),
    )
    return _request(lane, flight.seed, block, assumed, width)


def _install_branch(lane: Lane, flight: Flight, request: DraftRequest, drawn: Drawn) -> None:
    if isinstance(drawn, OutriderError):
        lane.enter(DraftedAhead(replace(flight, failure=drawn)))
    elif drawn is None:
        lane.enter(DraftedAhead(flight.with_branch(None)))
    else:
        branch = OptimisticBranch(drawn, request.history.generated)
        lane.statistics = lane.statistics.plus(
            optimistic_draft_tokens=len(drawn.proposals), optimistic_draft_blocks=1
        )
        lane.enter(DraftedAhead(flight.with_branch(branch)))
