"""The phases of a lane: a union in which each case holds exactly the resources of its status."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from service.errors import OptimisticBranchAlreadyPresent, OutriderError
from service.speculation.contract import DraftBlock, Submission, TokenLogprob
from service.speculation.lifecycle import RequestStatus
from service.speculation.reuse import OptimisticBranch


@dataclass(frozen=True, slots=True, eq=False)
class PendingPass:
    """A submitted pass: its completion and buffers, and the lanes that wait for it.

    `lanes` are request ids in the order submitted; `submitted` is a clock time.
    `verifies` tells a verification from a prefill.
    """

    pass_id: int
    submission: Submission
    lanes: tuple[int, ...]
    submitted: float
    verifies: bool


@dataclass(frozen=True, slots=True)
class Flight:
    """A lane's part of a pass: its index there, its boundary, and what is being verified.

    `block` is None on a plain step. `failure` is an error that struck the lane
    while the pass was in flight; it takes effect once the pass has ended.
    """

    pending: PendingPass
    index: int
    checkpoint: int
    seed: object
    block: DraftBlock | None
    branch: OptimisticBranch | None = None
    failure: OutriderError | None = None

    def with_branch(self, branch: OptimisticBranch | None) -> Flight:
        """Retain one optimistic branch, or none where nothing was proposed."""
        if self.branch is not None:
            raise OptimisticBranchAlreadyPresent
        return replace(self, branch=branch)


@dataclass(frozen=True, slots=True)
class Prefilling:
    """`consumed` prompt tokens are cached; `origin` is the boundary before the first.

    `logprobs` are those of the prompt so far, where the request wants them.
    """

    status: ClassVar[RequestStatus] = RequestStatus.PREFILL
    consumed: int
    origin: int | None
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class PrefillInFlight:
    """A prompt chunk of `length` tokens is submitted; `logprobs` are those of the chunks before."""

    status: ClassVar[RequestStatus] = RequestStatus.PREFILL
    flight: Flight
    consumed: int
    length: int
    origin: int
    logprobs: tuple[TokenLogprob, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadyToDraft:
    """Committed state can seed proposals; a promoted block may be kept from lookahead."""

    status: ClassVar[RequestStatus] = RequestStatus.READY_TO_DRAFT
    seed: object
    block: DraftBlock | None = None


@dataclass(frozen=True, slots=True)
class Drafted:
    """A block is ready to verify; None is a plain step."""

    status: ClassVar[RequestStatus] = RequestStatus.READY_TO_SUBMIT_VERIFICATION
    seed: object
    block: DraftBlock | None


@dataclass(frozen=True, slots=True)
class InFlight:
    """The target verifies."""

    status: ClassVar[RequestStatus] = RequestStatus.TARGET_VERIFICATION_IN_FLIGHT
    flight: Flight


@dataclass(frozen=True, slots=True)
class DraftingAhead:
    """The target verifies, and a branch is being drafted."""

    status: ClassVar[RequestStatus] = RequestStatus.OPTIMISTIC_DRAFT_RUNNING
    flight: Flight


@dataclass(frozen=True, slots=True)
class DraftedAhead:
    """The target verifies, and lookahead is done (with or without a branch)."""

    status: ClassVar[RequestStatus] = RequestStatus.OPTIMISTIC_DRAFT_READY
    flight: Flight


@dataclass(frozen=True, slots=True)
class Resolving:
    """The pass has ended and its rows are being judged."""

    status: ClassVar[RequestStatus] = RequestStatus.VERIFICATION_RESOLUTION
    flight: Flight


@dataclass(frozen=True, slots=True)
class Completed:
    """The request ended normally."""

    status: ClassVar[RequestStatus] = RequestStatus.COMPLETED


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The request was cancelled."""

    status: ClassVar[RequestStatus] = RequestStatus.CANCELLED


@dataclass(frozen=True, slots=True)
class Failed:
    """The request failed; the slot's contents may be unknowable."""

    status: ClassVar[RequestStatus] = RequestStatus.FAILED
    error: OutriderError
    slot_is_reusable: bool = True


Submitted = PrefillInFlight | InFlight | DraftingAhead | DraftedAhead | Resolving
Phase = (
    Prefilling
    | PrefillInFlight
    | ReadyToDraft
    | Drafted
    | InFlight
    | DraftingAhead
    | DraftedAhead
    | Resolving
    | Completed
    | Cancelled
    | Failed
)


def flight_of(phase: Phase) -> Flight | None:
    """Return the pass that a lane waits for, if any."""
    return phase.flight if isinstance(phase, Submitted) else None
