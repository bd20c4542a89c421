"""The error tree: every variant of eredu-core's enums is a class, and each has one status."""

import inspect

import pytest

from service import errors
from service.errors import OutriderError, Status

GENERATION_SEED = {
    "AlreadyFinished": errors.AlreadyFinished,
    "FailedGeneration": errors.FailedGeneration,
    "EmptyProposalBlock": errors.EmptyProposalBlock,
    "InvalidSpeculativeTransition": errors.InvalidRoundTransition,
    "IncompleteSpeculativeRound": errors.IncompleteRound,
    "OptimisticPrefixDiverged": errors.OptimisticPrefixDiverged,
    "EmptyOptimisticBranch": errors.EmptyOptimisticBranch,
    "OptimisticBranchAlreadyPresent": errors.OptimisticBranchAlreadyPresent,
    "UnknownSpeculativeRequest": errors.UnknownRequest,
    "ProposalCapacityExceeded": errors.ProposalCapacityExceeded,
    "ActiveSpeculativeRequests": errors.ActiveRequests,
    "MissingSpeculativeFinishReason": errors.MissingFinishReason,
    "ZeroDraftTokens": errors.ZeroDraftTokens,
    "NoBackendDraftCapacity": errors.NoDraftCapacity,
    "InvalidTemperature": errors.InvalidTemperature,
    "StochasticZeroTemperature": errors.StochasticZeroTemperature,
    "InvalidMirostatTau": errors.InvalidMirostatTau,
    "InvalidMirostatEta": errors.InvalidMirostatEta,
    "InvalidTopK": errors.InvalidTopK,
    "InvalidTopP": errors.InvalidTopP,
    "InvalidMinP": errors.InvalidMinP,
    "InvalidRepetitionPenalty": errors.InvalidRepetitionPenalty,
    "InvalidFrequencyPenalty": errors.InvalidFrequencyPenalty,
    "InvalidPresencePenalty": errors.InvalidPresencePenalty,
    "ZeroTokenBudget": errors.ZeroTokenBudget,
    "ZeroInFlightVerifications": errors.ZeroInFlightVerifications,
    "TooManyLookaheadBlocks": errors.TooManyLookaheadBlocks,
    "LookaheadWithoutBranchCapacity": errors.LookaheadWithoutBranchCapacity,
    "ZeroAdaptiveLookaheadWindow": errors.ZeroAdaptiveLookaheadWindow,
    "ZeroSpeculativeCompletionTimeout": errors.ZeroCompletionTimeout,
    "SpeculativeCompletionTimeoutTooLarge": errors.CompletionTimeoutTooLarge,
    "StalledSpeculativeSchedule": errors.StalledSchedule,
    "InvalidSpeculativeStatusTransition": errors.InvalidStatusTransition,
}
SPECULATION_SEED = {
    "Output::Semantic": errors.SemanticError,
    "Output::Publication": errors.PublicationError,
    "Driver::Backend": errors.EngineError,
    "Driver::Output": errors.OutputError,
    "Driver::Generation": errors.GenerationError,
    "Driver::CompletionDeadline": errors.CompletionDeadline,
    "Driver::UnsupportedCompletionCancellation": errors.UnsupportedCompletionCancellation,
}

STATUSES = {
    Status.NOT_FOUND: {"UnknownRequest", "UnknownModel", "UnknownProposer", "NoSuchRequest"},
    Status.ALREADY_EXISTS: {"DuplicateRequest"},
    Status.DEADLINE_EXCEEDED: {"CompletionDeadline", "RequestTimedOut"},
    Status.RESOURCE_EXHAUSTED: {"GrammarsBusy", "NoFreeSlot", "QueueFull", "SlowConsumer"},
    Status.UNIMPLEMENTED: {"UnsupportedField"},
    Status.UNAVAILABLE: {"ServiceError", "Starting", "Draining", "EngineStopped"},
    Status.FAILED_PRECONDITION: {
        "NoDraftCapacity",
        "UnsupportedCompletionCancellation",
        "IncompatibleDraft",
        "SpeculationUnavailable",
        "NoChatTemplate",
        "AddressUnavailable",
        "BundleError",
    },
}


def all_errors():
    found, stack = [], [OutriderError]
    while stack:
        error = stack.pop()
        found.append(error)
        stack.extend(error.__subclasses__())
    return [error for error in found if error.__module__ == "service.errors"]


def expected_status(error):
    for status, names in STATUSES.items():
        if error.__name__ in names:
            return status
    refusals = (errors.SettingError, errors.RequestError, errors.InvalidSettings)
    return Status.INVALID_ARGUMENT if issubclass(error, refusals) else Status.INTERNAL


def test_map_holds_every_variant_of_the_seeds_error_enums():
    assert (33, 7) == (len(GENERATION_SEED), len(SPECULATION_SEED))
    assert all(issubclass(e, errors.GenerationError) for e in GENERATION_SEED.values())


@pytest.mark.parametrize("error", all_errors(), ids=lambda error: error.__name__)
def test_every_error_has_exactly_one_status_and_says_what_it_is(error):
    assert error.status is expected_status(error)
    assert inspect.getdoc(error)


def test_statuses_in_the_table_belong_to_errors_that_exist():
    names = {error.__name__ for error in all_errors()}
    assert set().union(*STATUSES.values()) <= names


def test_setting_error_names_its_field_and_the_value():
    error = errors.InvalidTopK(-3)
    assert str(error) == "top_k must be non-negative, got -3"
    assert (error.field, error.value) == ("top_k", -3)


def test_invalid_request_lists_every_violation():
    error = errors.InvalidRequest(
        errors.FieldViolation("settings.top_p", "must be between zero and one"),
        errors.FieldViolation("prompt.token_ids[3]", "is outside the vocabulary"),
    )
    assert str(error) == (
        "settings.top_p: must be between zero and one; "
        "prompt.token_ids[3]: is outside the vocabulary"
    )
