"""Which speculation a request gets: chosen once, at admission, and always said."""

from __future__ import annotations

from collections.abc import Sequence

from service.errors import FieldViolation, InvalidRequest, SpeculationUnavailable, UnknownProposer
from service.runtime.models import LoadedModel, LoadedProposer
from service.runtime.request import (
    ResolvedSpeculation,
    SpeculationMode,
    SpeculationOffReason,
    SpeculationRequest,
)
from service.speculation.capability import (
    Declared,
    SpeculativeCapability,
    Unsupported,
)
from service.speculation.contract import ProposerTraits, TargetLimits

_OWN_WEIGHTS = frozenset({SpeculationMode.MTP, SpeculationMode.EAGLE3, SpeculationMode.SHARED_KV})


def choose_speculation(
    model: LoadedModel,
    request: SpeculationRequest,
    *,
    sampled: bool,
    seeded: bool,
    fixed_width: int,
) -> tuple[ResolvedSpeculation, LoadedProposer | None]:
    """Return what a request's speculation resolves to, and the proposer, if any.

    A sampled request with its own seed keeps one width, `fixed_width` where it
    names none; every other adapts below the widest.

    Raises:
        UnknownProposer: no proposer of the name is loaded.
        SpeculationUnavailable: nothing of the mode is ready.
        InvalidRequest: name and mode disagree, or the width is out of bounds.
    """
    if request.mode is SpeculationMode.NONE:
        return _off(SpeculationOffReason.REQUESTED, "speculation.mode: none was asked for"), None
    candidates = _candidates(model, request)
    if not candidates:
        detail = f"model {model.name} has no proposer loaded"
        return _off(SpeculationOffReason.NO_PROPOSER, detail), None
    able = [each for each in candidates if not (sampled and each.proposer.traits.greedy_only)]
    if not able:
        names = ", ".join(each.name for each in candidates)
        detail = f"settings.temperature: {names} can only draft greedily"
        return _off(SpeculationOffReason.SETTING, detail), None
    fixed = sampled and seeded
    return _on(model, request, able[0], fixed_width if fixed else None), able[0]


def widest(traits: ProposerTraits, limits: TargetLimits) -> int:
    """Return the most proposals of a round: a pass also holds the leading input."""
    return max(1, min(traits.max_proposals, limits.max_pass_rows - 1))


def _off(reason: SpeculationOffReason, detail: str) -> ResolvedSpeculation:
    return ResolvedSpeculation(SpeculationMode.NONE, off_reason=reason, off_detail=detail)


def _on(
    model: LoadedModel,
    request: SpeculationRequest,
    chosen: LoadedProposer,
    fixed_width: int | None,
) -> ResolvedSpeculation:
    traits, limits = chosen.proposer.traits, model.target.limits
    most = widest(traits, limits)
    width = min(most, fixed_width or most)
    if request.num_speculative_tokens is not None:
        width = _checked_width(request.num_speculative_tokens, most)
    can_look_ahead = (
        model.scheduler.lookahead_blocks > 0
        and limits.can_overlap_drafting
        and traits.can_branch
        and width >= 2
    )
    return ResolvedSpeculation(
        mode=chosen.mode,
        proposer=chosen.name,
        num_speculative_tokens=width,
        fixed=fixed_width is not None,
        lookahead=can_look_ahead and request.lookahead is not False,
    )


def _checked_width(width: int, most: int) -> int:
    if 1 <= width <= most:
        return width
    raise InvalidRequest(
        FieldViolation(
            "speculation.num_speculative_tokens", f"must be between 1 and {most}, got {width}"
        )
    )


def _candidates(model: LoadedModel, request: SpeculationRequest) -> Sequence[LoadedProposer]:
    """Return the proposers that the request admits, the preferred one first."""
    if request.proposer is not None:
        return (_named(model, request.proposer, request.mode),)
    if request.mode is SpeculationMode.AUTO:
        return model.proposers
    of_mode = tuple(each for each in model.proposers if each.mode is request.mode)
    if not of_mode:
        raise SpeculationUnavailable(
            request.mode.value, _why_unavailable(request.mode, model.capability)
        )
    return of_mode


def _named(model: LoadedModel, name: str, mode: SpeculationMode) -> LoadedProposer:
    chosen = next((each for each in model.proposers if each.name == name), None)
    if chosen is None:
        raise UnknownProposer(name, tuple(each.name for each in model.proposers))
    if mode not in {SpeculationMode.AUTO, chosen.mode}:
        description = f"{name} drafts as {chosen.mode.value}, not as {mode.value}"
        raise InvalidRequest(FieldViolation("speculation.proposer", description))
    return chosen


def _why_unavailable(mode: SpeculationMode, capability: SpeculativeCapability) -> str:
    if mode in _OWN_WEIGHTS:
        match capability:
            case Declared():
                return "the model declares a draft that is not prepared"
            case Unsupported(_, architecture):
                return f"the engine cannot run the draft's architecture {architecture}"
            case _:
                return "the model has no such draft"
    return "no proposer of this mode is loaded"
