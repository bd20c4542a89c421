"""Portable answers as wire messages: admission, rounds, events, the end, statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from outrider.v1 import capability_pb2, generation_pb2, statistics_pb2
from service.generation.events import (
    Finished,
    ReasoningDelta,
    SemanticEvent,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallEnd,
    ToolCallStart,
)
from service.generation.finish import MatchedStop
from service.rpc.echo import resolved_settings
from service.rpc.enums import DRAFT_SOURCES, FINISH_REASONS, TOKEN_SOURCES
from service.rpc.mirror import copy_field, duration, mirror
from service.runtime.request import (
    Admitted,
    Ended,
    GenerationRequest,
    ResolvedSpeculation,
)
from service.speculation.capability import (
    Declared,
    Ready,
    SpeculativeCapability,
    Unavailable,
    Unsupported,
)
from service.speculation.contract import TokenLogprob
from service.speculation.options import SchedulerOptions
from service.speculation.publication import PublishedRound
from service.speculation.statistics import SchedulerStatistics, SequenceStatistics

RATES = ("accept_rate", "acceptance_rate", "acceptance_length")


def admitted_message(admitted: Admitted, request: GenerationRequest) -> generation_pb2.Admitted:
    """Return what was decided, with every setting that has an effect echoed."""
    return generation_pb2.Admitted(
        request_id=admitted.request_id,
        model=admitted.model,
        settings=resolved_settings(admitted, request),
        speculation=speculation_message(admitted.speculation),
        prompt_tokens=admitted.prompt_tokens,
        eos_token_ids=sorted(admitted.eos_token_ids),
        timeout=None if admitted.timeout is None else duration(admitted.timeout),
    )


def speculation_message(resolved: ResolvedSpeculation) -> generation_pb2.ResolvedSpeculation:
    """Return what was decided about speculation."""
    return mirror(resolved, generation_pb2.ResolvedSpeculation())


def round_message(published: PublishedRound) -> generation_pb2.Round:
    """Return one publication: parallel lists of tokens and sources, and its events."""
    return generation_pb2.Round(
        tokens=generation_pb2.CommittedTokens(
            first_position=published.tokens[0].position if published.tokens else 0,
            token_ids=[token.token_id for token in published.tokens],
            sources=[TOKEN_SOURCES[source] for source in published.sources],
            logprobs=[each.logprob for each in published.logprobs],
            alternatives=alternatives_of(published.logprobs),
        ),
        prompt_logprobs=prompt_logprobs_message(published.prompt_logprobs),
        judged_tokens=published.judged,
        accepted_tokens=published.accepted,
        events=[event_message(event) for event in published.events],
    )


def prompt_logprobs_message(
    logprobs: Sequence[TokenLogprob],
) -> generation_pb2.PromptLogprobs | None:
    """Return the log-probabilities of a prompt, None where there are none."""
    if not logprobs:
        return None
    return generation_pb2.PromptLogprobs(
        logprobs=[each.logprob for each in logprobs], alternatives=alternatives_of(logprobs)
    )


def alternatives_of(logprobs: Sequence[TokenLogprob]) -> list[generation_pb2.Alternatives]:
    """Return the alternatives of each token; nothing where none were asked for."""
    if not any(each.alternatives for each in logprobs):
        return []
    return [
        generation_pb2.Alternatives(
            token_ids=[token for token, _ in each.alternatives],
            logprobs=[logprob for _, logprob in each.alternatives],
        )
        for each in logprobs
    ]


def event_message(event: SemanticEvent) -> generation_pb2.SemanticEvent:
    """Return one semantic event."""
    wire = generation_pb2.SemanticEvent
    match event:
        case TextDelta(text):
            return wire(text_delta=text)
        case ReasoningDelta(text):
            return wire(reasoning_delta=text)
        case ToolCallStart():
            return wire(tool_call_start=mirror(event, generation_pb2.ToolCallStart()))
        case ToolArgumentsDelta():
            return wire(tool_arguments_delta=mirror(event, generation_pb2.ToolArgumentsDelta()))
        case ToolCallEnd():
            return wire(tool_call_end=generation_pb2.ToolCallEnd())
        case Finished(reason):
            finished = generation_pb2.OutputFinished(reason=FINISH_REASONS[reason])
            return wire(finished=finished)
        case _:
            assert_never(event)


def finished_message(ended: Ended, events: tuple[SemanticEvent, ...]) -> generation_pb2.Finished:
    """Return the end of a request, with the events of the end itself."""
    return generation_pb2.Finished(
        reason=FINISH_REASONS[ended.reason],
        matched_stop=matched_stop_message(ended.matched_stop),
        usage=generation_pb2.Usage(
            prompt_tokens=ended.prompt_tokens,
            completion_tokens=ended.completion_tokens,
            reasoning_tokens=ended.reasoning_tokens,
        ),
        statistics=request_statistics(ended.statistics),
        events=[event_message(event) for event in events],
    )


def matched_stop_message(stop: MatchedStop | None) -> generation_pb2.MatchedStop | None:
    """Return the stop that matched, None where none did."""
    return None if stop is None else mirror(stop, generation_pb2.MatchedStop())


def request_statistics(statistics: SequenceStatistics) -> statistics_pb2.RequestStatistics:
    """Return every counter of a request, and the rates that do not divide by zero."""
    message = mirror(statistics, statistics_pb2.RequestStatistics())
    for rate in RATES:
        copy_field(message, rate, getattr(statistics, rate))
    return message


def scheduler_statistics(statistics: SchedulerStatistics) -> statistics_pb2.SchedulerStatistics:
    """Return every counter of a scheduler."""
    return mirror(statistics, statistics_pb2.SchedulerStatistics())


def scheduler_options(options: SchedulerOptions) -> statistics_pb2.SchedulerOptions:
    """Return every option of a scheduler."""
    return mirror(options, statistics_pb2.SchedulerOptions())


def capability_message(
    capability: SpeculativeCapability,
) -> capability_pb2.SpeculativeCapability:
    """Return one of the four capability states."""
    wire = capability_pb2.SpeculativeCapability
    match capability:
        case Unavailable():
            return wire(unavailable=wire.Unavailable())
        case Declared(source):
            return wire(declared=wire.Declared(source=DRAFT_SOURCES[source]))
        case Ready(source):
            return wire(ready=wire.Ready(source=DRAFT_SOURCES[source]))
        case Unsupported(source, architecture):
            state = wire.Unsupported(source=DRAFT_SOURCES[source], architecture=architecture)
            return wire(unsupported=state)
        case _:
            assert_never(capability)
