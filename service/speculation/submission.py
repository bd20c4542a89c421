"""Submit passes: prompt chunks and verifications, with a checkpoint of every lane in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from service.speculation.contract import (
    PrefillInput,
    Submission,
    Target,
    VerificationInput,
)
from service.speculation.lane import Lane
from service.speculation.observer import LifecycleStage
from service.speculation.phase import (
    Drafted,
    Flight,
    InFlight,
    PendingPass,
    PrefillInFlight,
    Prefilling,
)

Input = TypeVar("Input", PrefillInput, VerificationInput)


@dataclass(frozen=True, slots=True)
class PassTicket:
    """What names a pass before it is submitted: its id and the clock time."""

    pass_id: int
    submitted: float


@dataclass(frozen=True, slots=True)
class _Entry(Generic[Input]):
    lane: Lane
    origin: int
    input: Input


def submit_prefill(
    target: Target, lanes: Sequence[Lane], chunk: int, ticket: PassTicket
) -> PendingPass | None:
    """Submit the next chunk of each lane's prompt, at most `chunk` tokens each.

    Returns None when no lane survived. On failure each slot is restored to the
    boundary before its prompt.
    """
    entries = [entry for lane in lanes if (entry := _prefill_entry(target, lane, chunk))]
    pending = _submit(target, entries, target.prefill, ticket)
    if pending is None:
        return None
    for index, entry in enumerate(entries):
        phase = entry.lane.phase
        assert isinstance(phase, Prefilling)
        flight = Flight(pending, index, entry.input.checkpoint, None, None)
        length = len(entry.input.tokens)
        entry.lane.enter(
            PrefillInFlight(flight, phase.consumed, length, entry.origin, phase.logprobs)
        )
        _count_target_tokens(entry.lane, length)
    return pending


def _prefill_entry(target: Target, lane: Lane, chunk: int) -> _Entry[PrefillInput] | None:
    phase, request = lane.phase, lane.request
    assert isinstance(phase, Prefilling)
    try:
        first = phase.origin is None
        if first:
            lane.observe(LifecycleStage.INPUT)
        lane.observe(LifecycleStage.EXECUTION)
        checkpoint = target.checkpoint(request.slot)
        if first and request.proposer is not None:
            request.proposer.open(request.slot, request.prompt)
    except Exception as error:  # noqa: BLE001 - isolation: any fault is this lane's
        lane.fail(error)
        return None
    end = min(len(request.prompt), phase.consumed + chunk)
    tokens = request.prompt[phase.consumed : end]
    is_last = end == len(request.prompt)
    origin = checkpoint if phase.origin is None else phase.origin
    values = PrefillInput(
        slot=request.slot,
        checkpoint=checkpoint,
        tokens=tokens,
        is_last=is_last,
        history=lane.history,
        sampler=lane.state.sampler,
        every_row=request.prompt_logprobs is not None,
    )
    return _Entry(lane, origin, values)


def submit_verification(
    target: Target, lanes: Sequence[Lane], ticket: PassTicket
) -> PendingPass | None:
    """Submit each lane's leading input and block; None when no lane survived.

    A failure restores every checkpoint and ends the pass's lanes.
    """
    entries = [entry for lane in lanes if (entry := _verification_entry(target, lane))]
    pending = _submit(target, entries, target.submit, ticket)
    if pending is None:
        return None
    for index, entry in enumerate(entries):
        phase = entry.lane.phase
        assert isinstance(phase, Drafted)
        flight = Flight(pending, index, entry.origin, phase.seed, phase.block)
        entry.lane.enter(InFlight(flight))
        _count_target_tokens(entry.lane, len(entry.input.tokens))
    return pending


def _verification_entry(target: Target, lane: Lane) -> _Entry[VerificationInput] | None:
    phase = lane.phase
    assert isinstance(phase, Drafted)
    slot = lane.request.slot
    try:
        lane.observe(LifecycleStage.EXECUTION)
        checkpoint = target.checkpoint(slot)
    except Exception as error:  # noqa: BLE001 - isolation: any fault is this lane's
        lane.fail(error)
        return None
    proposals = () if phase.block is None else phase.block.tokens
    tokens = (lane.leading, *proposals)
    values = VerificationInput(slot, checkpoint, tokens, lane.history, lane.state.sampler)
    return _Entry(lane, checkpoint, values)


def _submit(
    target: Target,
    entries: Sequence[_Entry[Input]],
    submit: Callable[[Sequence[Input]], Submission],
    ticket: PassTicket,
) -> PendingPass | None:
    if not entries:
        return None
    try:
        submission = submit([entry.input for entry in entries])
    except Exception as error:  # noqa: BLE001 - isolation: the pass's lanes fail, no others
        for entry in entries:
            entry.lane.restore_and_fail(target, entry.origin, error)
        return None
    lanes = tuple(entry.lane.request_id for entry in entries)
    verifies = isinstance(entries[0].input, VerificationInput)
    return PendingPass(ticket.pass_id, submission, lanes, ticket.submitted, verifies)


def _count_target_tokens(lane: Lane, tokens: int) -> None:
    lane.statistics = lane.statistics.plus(target_tokens=tokens)
