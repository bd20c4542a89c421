"""From a request to everything its lane needs: checked, resolved and tokenised before any work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from service.errors import FieldViolation, InvalidRequest
from service.generation.config import (
    DEFAULT_MAX_NEW_TOKENS,
    ResolvedGenerationConfig,
    layered_config,
)
from service.generation.randomness import Randomness, fresh_seed, randomness_from_seed
from service.generation.sequence import GenerationSequence
from service.runtime.models import LoadedModel, LoadedProposer
from service.runtime.prompt import ReadPrompt, read_prompt
from service.runtime.request import (
    Admitted,
    GenerationRequest,
    ResolvedSpeculation,
)
from service.runtime.request_checks import logprob_violations, refuse, request_violations
from service.runtime.speculation_choice import choose_speculation
from service.runtime.text import OutputRules
from service.speculation.contract import SamplingInput, Tokens
from service.speculation.observer import LifecycleStage
from service.speculation.options import SpeculativeConfig
from service.speculation.publication import TextState
from service.text.stops import NO_STOPS, StopSet


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request that can be decoded as soon as it holds a slot."""

    admitted: Admitted
    prompt: Tokens
    config: SpeculativeConfig
    sampling: SamplingInput
    sequence: GenerationSequence
    text: TextState
    randomness: Randomness
    proposer: LoadedProposer | None
    component_timings: bool


@dataclass(frozen=True, slots=True)
class _Plan:
    """What was resolved of a request, before its lane's parts are made of it."""

    model: LoadedModel
    request: GenerationRequest
    config: ResolvedGenerationConfig
    ends: frozenset[int]
    stops: StopSet
    prompt: ReadPrompt
    seed: int


def prepare_request(
    model: LoadedModel,
    request: GenerationRequest,
    *,
    fixed_width: int,
    new_seed: Callable[[], int] = fresh_seed,
) -> PreparedRequest:
    """Check and resolve a request for a model; touches neither engine nor cache.

    Long prompts and large grammars take a while, so this does not belong on an event
    loop. Fields are named by their path inside the proto message `Generation`.

    Raises:
        RequestError: a field is refused; `InvalidRequest` names all it can.
    """
    model.observer(LifecycleStage.ADMISSION)
    plan = _plan(model, request, request.seed if request.seed is not None else new_seed())
    speculation, proposer = _speculation(plan, fixed_width)
    model.observer(LifecycleStage.COMPATIBILITY)
    admitted = _admitted(plan, speculation)
    randomness = randomness_from_seed(plan.seed, plan.config.temperature)
    return PreparedRequest(
        admitted=admitted,
        prompt=plan.prompt.tokens,
        config=_speculative_config(admitted),
        sampling=_sampling_input(plan, randomness),
        sequence=_empty_sequence(admitted),
        text=model.text.new_state(_output_rules(plan)),
        randomness=randomness,
        proposer=proposer,
        component_timings=request.component_timings,
    )


def _plan(model: LoadedModel, request: GenerationRequest, seed: int) -> _Plan:
    config = layered_config(model.defaults, request.overrides)
    stops, refused = _compiled_stops(model, request)
    refuse((*request_violations(model, request, config), *refused))
    prompt = read_prompt(model, request)
    length = len(prompt.tokens)
    most = min(config.max_new_tokens or DEFAULT_MAX_NEW_TOKENS, prompt.max_context - length)
    refuse(logprob_violations(config, length, most))
    return _Plan(
        model=model,
        request=request,
        config=config,
        ends=_end_tokens(model, request),
        stops=stops,
        prompt=prompt,
        seed=seed,
    )


def _compiled_stops(
    model: LoadedModel, request: GenerationRequest
) -> tuple[StopSet, tuple[FieldViolation, ...]]:
    try:
        return model.text.compile_stops(request.stops), ()
    except InvalidRequest as refused:
        return NO_STOPS, refused.violations


def _end_tokens(model: LoadedModel, request: GenerationRequest) -> frozenset[int]:
    if not request.stop_on_eos:
        return frozenset()
    if request.eos_token_id is not None:
        return frozenset({request.eos_token_id})
    return model.eos_token_ids


def _speculation(
    plan: _Plan, fixed_width: int
) -> tuple[ResolvedSpeculation, LoadedProposer | None]:
    speculation, proposer = choose_speculation(
        plan.model,
        plan.request.speculation,
        sampled=plan.config.temperature > 0.0,
        seeded=plan.request.seed is not None,
        fixed_width=fixed_width,
    )
    if plan.config.mirostat is not None and plan.config.temperature > 0.0:
        # A branch would be drafted under a state that the tokens before it still change.
        speculation = replace(speculation, lookahead=False)
    return speculation, proposer


def _admitted(plan: _Plan, speculation: ResolvedSpeculation) -> Admitted:
    return Admitted(
        request_id=plan.request.request_id,
        model=plan.model.name,
        config=plan.config,
        seed=plan.seed,
        max_tokens=plan.config.max_new_tokens or DEFAULT_MAX_NEW_TOKENS,
        prompt_tokens=len(plan.prompt.tokens),
        eos_token_ids=plan.ends,
        max_context=plan.prompt.max_context,
        speculation=speculation,
        timeout=plan.request.timeout,
    )


def _speculative_config(admitted: Admitted) -> SpeculativeConfig:
    return SpeculativeConfig(
        max_tokens=admitted.max_tokens,
        max_draft_tokens=max(1, admitted.speculation.num_speculative_tokens),
        temperature=admitted.config.temperature,
        eos_token_ids=admitted.eos_token_ids,
        fixed_width=admitted.speculation.fixed,
    )


def _sampling_input(plan: _Plan, randomness: Randomness) -> SamplingInput:
    text, dry, language = plan.model.text, plan.config.dry, plan.prompt.reading.language
    constraint = None
    if language is not None:
        constraint = text.constraint(language, plan.ends, plan.prompt.constraint_field)
    return SamplingInput(
        config=plan.config,
        prompt=plan.prompt.tokens,
        vocabulary_size=plan.model.vocabulary_size,
        end_token_ids=plan.ends | plan.stops.by_token.keys(),
        run_breakers=text.run_breakers(dry.sequence_breakers.texts) if dry else frozenset(),
        coins=randomness.coins,
        constraint=constraint,
    )


def _empty_sequence(admitted: Admitted) -> GenerationSequence:
    return GenerationSequence(
        max_tokens=admitted.max_tokens,
        eos_token_ids=admitted.eos_token_ids,
        context_room=admitted.max_context - admitted.prompt_tokens,
    )


def _output_rules(plan: _Plan) -> OutputRules:
    return OutputRules(
        stops=plan.stops,
        include_stop=plan.request.include_stop,
        silent=plan.model.eos_token_ids | plan.ends,
        min_tokens=plan.config.min_new_tokens,
        reading=plan.prompt.reading,
    )
