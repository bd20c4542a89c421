"""The one error tree: what can go wrong, each with its facts and exactly one gRPC status.

    OutriderError
    ├── GenerationError       settings, state transitions and schedules
    ├── OutputError           text state and publication
    ├── EngineError           engine work, its completion, its cache
    ├── RequestError          what a client asked for cannot be served
    ├── ServiceError          the service is not in a state to serve it
    └── BundleError           a model bundle is broken or foreign

`Status` names the gRPC codes, so that nothing outside `service.rpc` imports gRPC.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar


class Status(Enum):
    """Canonical gRPC status codes that an Outrider error can carry."""

    CANCELLED = 1
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


class OutriderError(Exception):
    """Any failure that Outrider names; `status` is what a client sees."""

    status: ClassVar[Status] = Status.INTERNAL


class GenerationError(OutriderError):
    """Invalid generation settings, or a state transition that is not legal."""


class AlreadyFinished(GenerationError):
    """A token was committed to a finished sequence."""

    def __init__(self) -> None:
        super().__init__("generation has already finished")


class FailedGeneration(GenerationError):
    """An earlier prediction or its delivery failed, and fenced the generation."""

    def __init__(self) -> None:
        super().__init__("generation is fenced after a failed prediction or delivery")


class EmptyProposalBlock(GenerationError):
    """A block without proposals reached verification."""

    def __init__(self) -> None:
        super().__init__("speculative verification requires at least one proposal")


class InvalidRoundTransition(GenerationError):
    """Proposals were accepted, rejected or followed by a bonus out of order."""

    def __init__(self) -> None:
        super().__init__("invalid speculative verification state transition")


class IncompleteRound(GenerationError):
    """A round was committed before a tail or a terminal token resolved it."""

    def __init__(self) -> None:
        super().__init__("speculative verification round is not resolved")


class OptimisticPrefixDiverged(GenerationError):
    """An optimistic branch was drafted from a prefix that was not committed."""

    def __init__(self) -> None:
        super().__init__("optimistic prefix diverged from the committed prefix")


class EmptyOptimisticBranch(GenerationError):
    """An optimistic branch holds no proposals."""

    def __init__(self) -> None:
        super().__init__("optimistic proposal branch is empty")


class OptimisticBranchAlreadyPresent(GenerationError):
    """A second optimistic branch was offered for one verification."""

    def __init__(self) -> None:
        super().__init__("verification already retains an optimistic branch")


class UnknownRequest(GenerationError):
    """A request id does not belong to this table."""

    status = Status.NOT_FOUND

    def __init__(self, request_id: int) -> None:
        super().__init__(f"unknown speculative request id {request_id}")
        self.request_id = request_id


class ProposalCapacityExceeded(GenerationError):
    """A promoted block no longer fits the request's budget."""

    def __init__(self, proposed: int, capacity: int) -> None:
        super().__init__(f"block has {proposed} proposals but capacity is {capacity}")
        self.proposed = proposed
        self.capacity = capacity


class ActiveRequests(GenerationError):
    """A table was finished while requests were still active."""

    def __init__(self) -> None:
        super().__init__("cannot finish a scheduler with active requests")


class MissingFinishReason(GenerationError):
    """A completed request holds no finish reason."""

    def __init__(self, request_id: int) -> None:
        super().__init__(f"completed request {request_id} has no finish reason")
        self.request_id = request_id


class SettingError(GenerationError):
    """A setting is refused; `field` names it and `value` is what was given."""

    status = Status.INVALID_ARGUMENT
    field: str = ""
    rule: str = ""

    def __init__(self, value: object = None) -> None:
        given = "" if value is None else f", got {value}"
        super().__init__(f"{self.field} {self.rule}{given}")
        self.value = value


class ZeroDraftTokens(SettingError):
    """No proposal could be generated in a round."""

    field = "max_draft_tokens"
    rule = "must be positive"


class NoDraftCapacity(GenerationError):
    """The selected engine or proposer cannot submit any proposal."""

    status = Status.FAILED_PRECONDITION

    def __init__(self) -> None:
        super().__init__("the engine does not permit any draft tokens")


class InvalidTemperature(SettingError):
    """Temperature is NaN, infinite or negative."""

    field = "temperature"
    rule = "must be finite and non-negative"


class StochasticZeroTemperature(SettingError):
    """Sampling was asked for at temperature zero."""

    field = "temperature"
    rule = "must be greater than zero when do_sample is true"


class InvalidMirostatTau(SettingError):
    """Mirostat's target surprise is not finite and positive."""

    field = "mirostat.tau"
    rule = "must be finite and positive"


class InvalidMirostatEta(SettingError):
    """Mirostat's adaptation rate is not finite and positive."""

    field = "mirostat.eta"
    rule = "must be finite and positive"


class InvalidTopK(SettingError):
    """Top-k is negative."""

    field = "top_k"
    rule = "must be non-negative"


class InvalidTopP(SettingError):
    """Top-p lies outside zero through one."""

    field = "top_p"
    rule = "must be between zero and one"


class InvalidMinP(SettingError):
    """Min-p lies outside zero through one."""

    field = "min_p"
    rule = "must be between zero and one"


class InvalidRepetitionPenalty(SettingError):
    """The repetition penalty is not finite and positive."""

    field = "repetition_penalty"
    rule = "must be finite and positive"


class InvalidFrequencyPenalty(SettingError):
    """The frequency penalty is not finite."""

    field = "frequency_penalty"
    rule = "must be finite"


class InvalidPresencePenalty(SettingError):
    """The presence penalty is not finite."""

    field = "presence_penalty"
    rule = "must be finite"


class ZeroTokenBudget(SettingError):
    """An explicit token budget is zero or negative."""

    field = "max_new_tokens"
    rule = "must be positive when supplied"


class SettingOutOfRange(SettingError):
    """A setting does not satisfy its own rule."""

    def __init__(self, field: str, rule: str, value: object) -> None:
        self.field = field
        self.rule = rule
        super().__init__(value)


class ContradictorySettings(SettingError):
    """A setting contradicts another one, which `rule` names."""

    def __init__(self, field: str, rule: str) -> None:
        self.field = field
        self.rule = rule
        super().__init__()


class ZeroInFlightVerifications(SettingError):
    """The scheduler could not retain any target pass."""

    field = "max_in_flight_verifications"
    rule = "must be positive"


class TooManyLookaheadBlocks(SettingError):
    """More than one block of lookahead was asked for."""

    field = "lookahead_blocks"
    rule = "must be zero or one"


class LookaheadWithoutBranchCapacity(SettingError):
    """Lookahead is on but no optimistic branch may be retained."""

    field = "max_optimistic_branches"
    rule = "must be positive when lookahead is on"


class ZeroAdaptiveLookaheadWindow(SettingError):
    """Adaptive lookahead has no observation window."""

    field = "adaptive_lookahead_min_blocks"
    rule = "must be positive"


class OptionOutOfRange(SettingError):
    """A scheduler option does not fit its range, both ends included."""

    def __init__(self, field: str, value: int, lowest: int, highest: int) -> None:
        self.field = field
        self.rule = f"must be within {lowest} to {highest}"
        super().__init__(value)


class ZeroCompletionTimeout(SettingError):
    """A bounded wait has no time to wait."""

    field = "completion_timeout_milliseconds"
    rule = "must be positive"


class CompletionTimeoutTooLarge(SettingError):
    """The timeout does not fit the portable millisecond field (64 bits)."""

    field = "completion_timeout_milliseconds"
    rule = "is too large"


class StalledSchedule(GenerationError):
    """Active requests expose no legal action: the order of work is unknowable."""

    def __init__(self) -> None:
        super().__init__("scheduler reached a non-terminal state with no eligible operation")


class InvalidStatusTransition(GenerationError):
    """A lifecycle edge is not in the table."""

    def __init__(self, source: str, target: str) -> None:
        super().__init__(f"invalid request status transition from {source} to {target}")
        self.source = source
        self.target = target


class OutputError(OutriderError):
    """Failure in text state or publication; never an engine fault."""


class SemanticError(OutputError):
    """Decoding, stop matching, parsing or an observer failed during `operation`."""

    def __init__(self, operation: str, message: str) -> None:
        super().__init__(f"semantic state failed during {operation}: {message}")
        self.operation = operation
        self.message = message


class PublicationError(OutputError):
    """The consumer refused committed output."""

    def __init__(self, message: str) -> None:
        super().__init__(f"output publication failed: {message}")
        self.message = message


class EngineError(OutriderError):
    """Engine execution or sampling failed."""


class CompletionDeadline(EngineError):
    """A pass outlived its deadline; `cancellation` is the disposition applied."""

    status = Status.DEADLINE_EXCEEDED

    def __init__(self, cancellation: str) -> None:
        super().__init__(f"verification completion deadline exceeded ({cancellation})")
        self.cancellation = cancellation


class UnsupportedCompletionCancellation(EngineError):
    """The engine cannot honour the timeout disposition that settings ask for."""

    status = Status.FAILED_PRECONDITION

    def __init__(self, cancellation: str) -> None:
        super().__init__(f"engine completion does not support {cancellation}")
        self.cancellation = cancellation


class RestoreFailed(EngineError):
    """A checkpoint could not be restored; chained to the failure that asked for it."""

    def __init__(self, slot: int, cause: BaseException) -> None:
        super().__init__(f"cache slot {slot} could not be restored: {cause}")
        self.slot = slot


class NoFreeSlot(EngineError):
    """Every cache slot is taken or quarantined."""

    status = Status.RESOURCE_EXHAUSTED

    def __init__(self) -> None:
        super().__init__("no cache slot is free")


class UnknownSlot(EngineError):
    """A slot handle is not open."""

    def __init__(self, slot: int) -> None:
        super().__init__(f"cache slot {slot} is not open")
        self.slot = slot


class InvalidLogits(EngineError):
    """A row of logits cannot be sampled from; `peak` is its highest value."""

    def __init__(self, peak: float) -> None:
        super().__init__(f"logits have no finite maximum, got {peak}")
        self.peak = peak


class IncompatibleDraft(EngineError):
    """A draft's tokenizer or geometry does not match the target's."""

    status = Status.FAILED_PRECONDITION

    def __init__(self, field: str, target: object, draft: object) -> None:
        super().__init__(f"draft is incompatible: {field} is {draft}, the target has {target}")
        self.field = field


@dataclass(frozen=True)
class FieldViolation:
    """One refused field: its path in the request, and why."""

    field: str
    description: str


class RequestError(OutriderError):
    """What a client asked for cannot be served."""

    status = Status.INVALID_ARGUMENT


class MalformedMessage(RequestError):
    """A message is missing, or its bytes are not what the contract says."""


class InvalidRequest(RequestError):
    """One or more fields are refused; `violations` names every one of them."""

    def __init__(self, *violations: FieldViolation) -> None:
        super().__init__("; ".join(f"{v.field}: {v.description}" for v in violations))
        self.violations = violations


class UnsupportedField(RequestError):
    """Fields that exist in the contract and that this server does not serve yet."""

    status = Status.UNIMPLEMENTED

    def __init__(self, *violations: FieldViolation) -> None:
        super().__init__("; ".join(f"{v.field}: {v.description}" for v in violations))
        self.violations = violations


class UnknownModel(RequestError):
    """No model of this name is loaded."""

    status = Status.NOT_FOUND

    def __init__(self, model: str, loaded: tuple[str, ...]) -> None:
        super().__init__(f"unknown model {model!r}; loaded: {', '.join(loaded)}")
        self.model = model
        self.loaded = loaded


class UnknownProposer(RequestError):
    """No proposer of this name is loaded."""

    status = Status.NOT_FOUND

    def __init__(self, proposer: str, loaded: tuple[str, ...]) -> None:
        names = ", ".join(loaded) or "none"
        super().__init__(f"unknown proposer {proposer!r}; loaded: {names}")
        self.proposer = proposer
        self.loaded = loaded


class SpeculationUnavailable(RequestError):
    """The speculation mode asked for by name is not ready on this model."""

    status = Status.FAILED_PRECONDITION

    def __init__(self, mode: str, reason: str) -> None:
        super().__init__(f"speculation mode {mode} is not available: {reason}")
        self.mode = mode
        self.reason = reason


class NothingAllowed(RequestError):
    """A request's own settings leave no token for a position; `fields` are those settings."""

    status = Status.INVALID_ARGUMENT

    def __init__(self, position: int, fields: tuple[str, ...]) -> None:
        together = " and ".join(fields)
        super().__init__(f"no token is left at position {position} of the output by {together}")
        self.position = position
        self.fields = fields

    @property
    def violations(self) -> tuple[FieldViolation, ...]:
        """Return each field, refused for what all of them leave together."""
        why = f"no token is left at position {self.position} of the output"
        return tuple(FieldViolation(field, why) for field in self.fields)


class ConstraintFailed(RequestError):
    """A constraint could not be followed further, within the limits of its engine."""

    status = Status.INVALID_ARGUMENT

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field} {reason}")
        self.field = field
        self.violations = (FieldViolation(field, reason),)


class NoChatTemplate(RequestError):
    """A conversation was given to a model without a chat template."""

    status = Status.FAILED_PRECONDITION

    def __init__(self, model: str) -> None:
        super().__init__(f"model {model!r} has no chat template")
        self.model = model


class DuplicateRequest(RequestError):
    """A request of this id is still live for this caller."""

    status = Status.ALREADY_EXISTS

    def __init__(self, request_id: str) -> None:
        super().__init__(f"request id {request_id!r} is already in use")
        self.request_id = request_id


class NoSuchRequest(RequestError):
    """A cancel names a request that is not live for this caller."""

    status = Status.NOT_FOUND

    def __init__(self, request_id: str) -> None:
        super().__init__(f"request id {request_id!r} is not live")
        self.request_id = request_id


class RequestTimedOut(RequestError):
    """A request's own timeout passed before it finished."""

    status = Status.DEADLINE_EXCEEDED

    def __init__(self, seconds: float) -> None:
        super().__init__(f"request exceeded its timeout of {seconds:g} s")
        self.seconds = seconds


class ServiceError(OutriderError):
    """The service is not in a state to serve."""

    status = Status.UNAVAILABLE


class QueueFull(ServiceError):
    """Admission is bounded and the bound is reached; retry later."""

    status = Status.RESOURCE_EXHAUSTED

    def __init__(self, waiting: int, decoding: int, retry_seconds: float) -> None:
        super().__init__(f"the queue is full: {waiting} waiting, {decoding} decoding")
        self.waiting = waiting
        self.decoding = decoding
        self.retry_seconds = retry_seconds


class GrammarsBusy(ServiceError):
    """Too many constraints are being compiled; retry later."""

    status = Status.RESOURCE_EXHAUSTED

    def __init__(self) -> None:
        super().__init__("too many constraints are being compiled")


class Starting(ServiceError):
    """The server has not yet loaded its models."""

    def __init__(self) -> None:
        super().__init__("the server is starting")


class Draining(ServiceError):
    """The server is shutting down and takes no new requests."""

    def __init__(self) -> None:
        super().__init__("the server is draining")


class EngineStopped(ServiceError):
    """The engine thread ended after a fault that it could not isolate."""

    def __init__(self, cause: str) -> None:
        super().__init__(f"the engine stopped: {cause}")
        self.cause = cause


class SlowConsumer(ServiceError):
    """A client left its bounded outbox full for too long."""

    status = Status.RESOURCE_EXHAUSTED

    def __init__(self, messages: int) -> None:
        super().__init__(f"the client left {messages} messages unread")
        self.messages = messages


class InvalidSettings(ServiceError):
    """A server setting is unknown or malformed."""

    status = Status.INVALID_ARGUMENT

    def __init__(self, field: str, description: str) -> None:
        super().__init__(f"setting {field}: {description}")
        self.field = field
        self.description = description


class AddressUnavailable(ServiceError):
    """The listening address cannot be bound."""

    status = Status.FAILED_PRECONDITION

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"cannot listen on {address}: {reason}")
        self.address = address
        self.reason = reason


class BundleError(OutriderError):
    """A model bundle is missing, half-written, damaged or foreign."""

    status = Status.FAILED_PRECONDITION

    def __init__(self, message: str, *, path: str, field: str | None = None) -> None:
        where = path if field is None else f"{path}: {field}"
        super().__init__(f"{where}: {message}")
        self.path = path
        self.field = field
