"""From a request to everything its lane needs: checked, resolved and tokenised before any work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from service.errors import FieldViolation, InvalidRequest, SettingError
from service.generation.config import (
    DEFAULT_MAX_NEW_TOKENS,
    ResolvedGenerationConfig,
    resolve_generation_config,
)
from service.generation.randomness import Randomness, fresh_seed, randomness_from_seed
from service.generation.sequence import GenerationSequence
from service.runtime.models import LoadedModel, LoadedProposer
from service.runtime.request import (
    Admitted,
    ChatPrompt,
    GenerationRequest,
    Prompt,
    TextPrompt,
    TokenPrompt,
)
from service.runtime.speculation_choice import choose_speculation
from service.speculation.contract import Tokens
from service.speculation.observer import LifecycleStage
from service.speculation.options import SpeculativeConfig
from service.speculation.publication import TextState

_MOST_VIOLATIONS = 16


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request that can be decoded as soon as it holds a slot."""

    admitted: Admitted
    prompt: Tokens
    config: SpeculativeConfig
    sequence: GenerationSequence
    text: TextState
    randomness: Randomness
    proposer: LoadedProposer | None
    component_timings: bool


def prepare_request(
    model: LoadedModel,
    request: GenerationRequest,
    *,
    fixed_width: int,
    new_seed: Callable[[], int] = fresh_seed,
) -> PreparedRequest:
    """Check and resolve a request for a model; touches neither engine nor cache.

    Long prompts take a while to tokenise, so this does not belong on an event
    loop. Fields are named by their path inside the proto message `Generation`.

    Raises:
        RequestError: a field is refused; `InvalidRequest` names all it can.
    """
    model.observer(LifecycleStage.ADMISSION)
    config = _resolve_config(model, request)
    ends = _end_tokens(model, request)
    text = model.text.new_state(
        request.stops, include_stop=request.include_stop, silent=model.eos_token_ids | ends
    )
    prompt, max_context = _prompt_and_context(model, request)
    speculation, proposer = choose_speculation(
        model,
        request.speculation,
        sampled=config.temperature > 0.0,
        seeded=request.seed is not None,
        fixed_width=fixed_width,
    )
    model.observer(LifecycleStage.COMPATIBILITY)
    admitted = Admitted(
        request_id=request.request_id,
        model=model.name,
        config=config,
        seed=new_seed() if request.seed is None else request.seed,
        max_tokens=config.max_new_tokens or DEFAULT_MAX_NEW_TOKENS,
        prompt_tokens=len(prompt),
        eos_token_ids=ends,
        max_context=max_context,
        speculation=speculation,
        timeout=request.timeout,
    )
    return PreparedRequest(
        admitted=admitted,
        prompt=prompt,
        config=_speculative_config(admitted),
        sequence=_empty_sequence(admitted),
        text=text,
        randomness=randomness_from_seed(admitted.seed, config.temperature),
        proposer=proposer,
        component_timings=request.component_timings,
    )


def _speculative_config(admitted: Admitted) -> SpeculativeConfig:
    return SpeculativeConfig(
        max_tokens=admitted.max_tokens,
        max_draft_tokens=max(1, admitted.speculation.num_speculative_tokens),
        temperature=admitted.config.temperature,
        eos_token_ids=admitted.eos_token_ids,
        fixed_width=admitted.speculation.fixed,
    )


def _empty_sequence(admitted: Admitted) -> GenerationSequence:
    return GenerationSequence(
        max_tokens=admitted.max_tokens,
        eos_token_ids=admitted.eos_token_ids,
        context_room=admitted.max_context - admitted.prompt_tokens,
    )


def _end_tokens(model: LoadedModel, request: GenerationRequest) -> frozenset[int]:
    if not request.stop_on_eos:
        return frozenset()
    if request.eos_token_id is not None:
        return frozenset({request.eos_token_id})
    return model.eos_token_ids


def _resolve_config(model: LoadedModel, request: GenerationRequest) -> ResolvedGenerationConfig:
    try:
        return resolve_generation_config(model.defaults, request.overrides)
    except SettingError as error:
        violation = FieldViolation(f"settings.{error.field}", str(error))
        raise InvalidRequest(violation) from error


def _prompt_and_context(model: LoadedModel, request: GenerationRequest) -> tuple[Tokens, int]:
    """Return the prompt's tokens and the window, both checked."""
    _refuse(_bounds(model, request))
    prompt = _tokenise(model, request.prompt)
    window = model.target.limits.max_context
    max_context = window if request.max_context is None else request.max_context
    _refuse(_prompt_violations(request.prompt, len(prompt), max_context))
    return prompt, max_context


def _refuse(violations: Iterator[FieldViolation]) -> None:
    found = tuple(islice(violations, _MOST_VIOLATIONS))
    if found:
        raise InvalidRequest(*found)


def _bounds(model: LoadedModel, request: GenerationRequest) -> Iterator[FieldViolation]:
    """Yield what can be refused before anything is tokenised."""
    if isinstance(request.prompt, TokenPrompt):
        ids = request.prompt.token_ids
        yield from _outside(model.vocabulary_size, "token_ids.ids[{}]", ids)
    end = () if request.eos_token_id is None else (request.eos_token_id,)
    yield from _outside(model.vocabulary_size, "settings.eos_token_id", end)
    window, widest = request.max_context, model.target.limits.max_context
    if window is not None and not 1 <= window <= widest:
        yield FieldViolation("settings.max_context", f"must be 1 to {widest}, got {window}")
    if isinstance(request.prompt, TextPrompt):
        yield from _hopeless(model, request.prompt, request.prompt.text)


def _outside(vocabulary: int, path: str, tokens: Tokens) -> Iterator[FieldViolation]:
    for index, token in enumerate(tokens):
        if not 0 <= token < vocabulary:
            description = f"must be a token id from 0 to {vocabulary - 1}, got {token}"
            yield FieldViolation(path.format(index), description)


def _hopeless(model: LoadedModel, prompt: Prompt, text: str) -> Iterator[FieldViolation]:
    """Yield a refusal of a text that cannot fit, before seconds are spent on its tokens."""
    least, window = model.text.tokenizer.least_tokens(text), model.target.limits.max_context
    if least >= window:
        yield _too_long(_prompt_field(prompt), f"at least {least}", window)


def _tokenise(model: LoadedModel, prompt: Prompt) -> Tokens:
    match prompt:
        case TokenPrompt(token_ids):
            return token_ids
        case TextPrompt(text):
            return model.text.encode(text, add_special_tokens=False)
        case ChatPrompt(messages):
            rendered = model.text.render(messages, max_characters=model.max_characters)
            _refuse(_hopeless(model, prompt, rendered))
            return model.text.encode_rendered(rendered)


def _prompt_violations(prompt: Prompt, length: int, max_context: int) -> Iterator[FieldViolation]:
    field = _prompt_field(prompt)
    if length == 0:
        yield FieldViolation(field, "must hold at least one token")
    if length >= max_context:
        yield _too_long(field, str(length), max_context)


def _too_long(field: str, length: str, max_context: int) -> FieldViolation:
    description = f"has {length} tokens and leaves no room for output in {max_context}"
    return FieldViolation(field, description)


def _prompt_field(prompt: Prompt) -> str:
    match prompt:
        case TextPrompt():
            return "text"
        case TokenPrompt():
            return "token_ids"
        case ChatPrompt():
            return "chat"
