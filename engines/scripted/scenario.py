"""A scenario: a scripted engine, requests that arrive, and what goes wrong for them."""

from __future__ import annotations

from dataclasses import dataclass

from engines.scripted.fault import Operation
from engines.scripted.model import ScriptedSettings
from service.generation.config import ResolvedGenerationConfig
from service.speculation.completion import CompletionCancellation
from service.speculation.contract import Tokens


@dataclass(frozen=True, slots=True)
class ScenarioScheduler:
    """The scheduler's settings that scenarios vary."""

    lookahead: bool
    passes_in_flight: int
    pass_lanes: int
    prefill_chunk: int
    timeout_seconds: float
    cancellation: CompletionCancellation


@dataclass(frozen=True, slots=True)
class AfterSteps:
    """Arrive once so many verification passes were submitted."""

    steps: int


@dataclass(frozen=True, slots=True)
class AtTime:
    """Arrive at a time of the scripted clock, in seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class CancelAfterTokens:
    """Cancel once so many tokens were delivered."""

    tokens: int


@dataclass(frozen=True, slots=True)
class CancelAtStage:
    """Cancel when a lifecycle stage is observed for the nth time."""

    stage: str
    nth: int


@dataclass(frozen=True, slots=True)
class ScenarioRequest:
    """One request: what it asks for, when it comes and goes, and how it has to end."""

    name: str
    prompt: Tokens
    arrival: AfterSteps | AtTime
    max_tokens: int
    draft: str | None
    width: int
    is_fixed: bool
    lookahead: bool
    config: ResolvedGenerationConfig
    seed: int
    cancel: CancelAfterTokens | CancelAtStage | None
    status: str
    output: str | None


@dataclass(frozen=True, slots=True)
class ScenarioFault:
    """A fault of one request's calls, or of whole calls where `request` is None."""

    request: str | None
    where: Operation
    nth: int
    times: int
    message: str


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything that happens, to one engine, from an idle table to an idle table."""

    title: str
    settings: ScriptedSettings
    scheduler: ScenarioScheduler
    requests: tuple[ScenarioRequest, ...]
    faults: tuple[ScenarioFault, ...]
