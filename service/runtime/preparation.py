"""From a request to everything its lane needs: checked, resolved and tokenised before any work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from service.errors import FieldViolation
from service.generation.config import (
    DEFAULT_MAX_NEW_TOKENS,
    ResolvedGenerationConfig,
    layered_config,
)
from service.generation.randomness import Randomness, fresh_seed, randomness_from_seed
from service.generation.sequence import GenerationSequence
from service.runtime.models import LoadedModel, LoadedProposer
from service.runtime.prompt import ReadPrompt, read_prompt
from service.runtime.refusals import Refusals
from service.runtime.request import (
    Admitted,
    GenerationRequest,
    ResolvedSpeculation,
    SpeculationMode,
)
from service.runtime.request_checks import logprob_violations, request_violations
from service.runtime.speculation_choice import choose_speculation
from service.speculation.contract import Constraint, SamplingInput, Tokens
from service.speculation.observer import LifecycleStage
from service.speculation.options import SpeculativeConfig
from service.speculation.publication import TextState
from service.text.dialect import Reading
from service.text.state import GeneratedText, TextRules
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
    constraint: Constraint | None
    speculation: ResolvedSpeculation
    proposer: LoadedProposer | None
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
        RequestError: the request is refused; `InvalidRequest` names every field at fault.
    """
    model.observer(LifecycleStage.ADMISSION)
    seed = request.seed if request.seed is not None else new_seed()
    plan = _plan(model, request, fixed_width, seed)
    model.observer(LifecycleStage.COMPATIBILITY)
    admitted = _admitted(plan)
    randomness = randomness_from_seed(plan.seed, plan.config.temperature)
    return PreparedRequest(
        admitted=admitted,
        prompt=plan.prompt.tokens,
        config=_speculative_config(admitted),
        sampling=_sampling_input(plan, randomness),
        sequence=_empty_sequence(admitted),
        text=GeneratedText(_text_rules(plan)),
        randomness=randomness,
        proposer=plan.proposer,
        component_timings=request.component_timings,
    )


def _plan(model: LoadedModel, request: GenerationRequest, fixed_width: int, seed: int) -> _Plan:
    config = layered_config(model.defaults, request.overrides)
    ends = _end_tokens(model, request)
    unread = ReadPrompt((), 0, Reading(language=request.constraint))
    refusals = Refusals(request_violations(model, request, config))
    stops = refusals.attempt(lambda: model.text.compile_stops(request.stops), NO_STOPS)
    speculation, proposer = refusals.attempt(
        lambda: _speculation(model, request, config, fixed_width), _NO_SPECULATION
    )
    prompt = refusals.attempt(lambda: read_prompt(model, request), unread)
    constraint = refusals.attempt(lambda: _constraint(model, prompt, ends), None)
    refusals.add(_logprob_violations(config, prompt))
    refusals.settle()
    return _Plan(
        model=model,
        request=request,
        config=config,
        ends=ends,
        stops=stops,
        prompt=prompt,
        constraint=constraint,
        speculation=speculation,
        proposer=proposer,
        seed=seed,
    )


def _logprob_violations(
    config: ResolvedGenerationConfig, prompt: ReadPrompt
) -> Iterator[FieldViolation]:
    length = len(prompt.tokens)
    most = min(config.max_new_tokens or DEFAULT_MAX_NEW_TOKENS, prompt.max_context - length)
    return logprob_violations(config, length, most)


def _end_tokens(model: LoadedModel, request: GenerationRequest) -> frozenset[int]:
    if not request.stop_on_eos:
        return frozenset()
    if request.eos_token_id is not None:
        return frozenset({request.eos_token_id})
    return model.eos_token_ids


_Speculation = tuple[ResolvedSpeculation, LoadedProposer | None]
_NO_SPECULATION: _Speculation = ResolvedSpeculation(SpeculationMode.NONE), None


def _speculation(
    model: LoadedModel,
    request: GenerationRequest,
    config: ResolvedGenerationConfig,
    fixed_width: int,
) -> _Speculation:
    speculation, proposer = choose_speculation(
        model,
        request.speculation,
        sampled=config.temperature > 0.0,
        seeded=request.seed is not None,
        fixed_width=fixed_width,
    )
    if config.mirostat is not None and config.temperature > 0.0:
        # A branch would be drafted under a state that the tokens before it still change.
        speculation = replace(speculation, lookahead=False)
    return speculation, proposer


def _constraint(model: LoadedModel, prompt: ReadPrompt, ends: frozenset[int]) -> Constraint | None:
    language = prompt.reading.language
    if language is None:
        return None
    # Another end is refused by its own field, and a mask would be as long as it is large.
    known = frozenset(end for end in ends if end < model.vocabulary_size)
    return model.text.constraint(language, known, prompt.constraint_field)


def _admitted(plan: _Plan) -> Admitted:
    return Admitted(
        request_id=plan.request.request_id,
        model=plan.model.name,
        config=plan.config,
        seed=plan.seed,
        max_tokens=plan.config.max_new_tokens or DEFAULT_MAX_NEW_TOKENS,
        prompt_tokens=len(plan.prompt.tokens),
        eos_token_ids=plan.ends,
        max_context=plan.prompt.max_context,
        speculation=plan.speculation,
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
    text, dry = plan.model.text, plan.config.dry
    return SamplingInput(
        config=plan.config,
        prompt=plan.prompt.tokens,
        vocabulary_size=plan.model.vocabulary_size,
        end_token_ids=plan.ends | plan.stops.by_token.keys(),
        run_breakers=text.run_breakers(dry.sequence_breakers.texts) if dry else frozenset(),
        coins=randomness.coins,
        constraint=plan.constraint,
    )


def _empty_sequence(admitted: Admitted) -> GenerationSequence:
    return GenerationSequence(
        max_tokens=admitted.max_tokens,
        eos_token_ids=admitted.eos_token_ids,
        context_room=admitted.max_context - admitted.prompt_tokens,
    )


def _text_rules(plan: _Plan) -> TextRules:
    reading = plan.prompt.reading
    return TextRules(
        vocabulary=plan.model.text.tokenizer.vocabulary,
        stops=plan.stops,
        include_stop=plan.request.include_stop,
        silent=plan.model.eos_token_ids | plan.ends,
        parser=reading.parser,
        markers=reading.markers,
        min_tokens=plan.config.min_new_tokens,
    )
