"""What is refused of a request before anything is tokenised: every field at fault, at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from service.errors import FieldViolation, InvalidRequest
from service.generation.config import (
    DEFAULT_MAX_NEW_TOKENS,
    ResolvedGenerationConfig,
    layered_config,
)
from service.generation.setting_rules import setting_errors
from service.runtime.models import LoadedModel
from service.runtime.refusals import Refusals
from service.runtime.request import GenerationRequest, TokenPrompt
from service.text.stops import NO_STOPS

_MOST_OF_A_LIST = 16
"""How many ids of one list are named, so that they leave room for what else is wrong."""
MAX_LISTED_LOGPROBS = 2**20
"""Of one request, alternatives included. On the wire each takes at most 11 bytes, the token's own
included, so that a whole answer stays within any message limit that is not unusually low."""


def refuse(violations: Iterable[FieldViolation]) -> None:
    """Accept a request without violations.

    Raises:
        InvalidRequest: there are some.
    """
    found = tuple(violations)
    if found:
        raise InvalidRequest(*found)


def request_violations(
    model: LoadedModel, request: GenerationRequest, config: ResolvedGenerationConfig
) -> Iterator[FieldViolation]:
    """Yield what is wrong with the resolved settings, with ids, and with the window."""
    for error in setting_errors(config):
        yield FieldViolation(f"settings.{error.field}", str(error))
    if config.max_new_tokens is None and config.min_new_tokens > DEFAULT_MAX_NEW_TOKENS:
        given = f"is {config.min_new_tokens}, above the default {DEFAULT_MAX_NEW_TOKENS}"
        yield FieldViolation("settings.min_new_tokens", f"{given} of max_new_tokens")
    yield from _id_violations(model, request, config)
    window, widest = request.max_context, model.target.limits.max_context
    if window is not None and not 1 <= window <= widest:
        yield FieldViolation("settings.max_context", f"must be 1 to {widest}, got {window}")


def missing_ids(model: LoadedModel, request: GenerationRequest) -> tuple[FieldViolation, ...]:
    """Return which ids of a request the model lacks, those of its stops among them."""
    config = layered_config(model.defaults, request.overrides)
    refusals = Refusals(_id_violations(model, request, config))
    refusals.attempt(lambda: model.text.compile_stops(request.stops), NO_STOPS)
    return refusals.found


def logprob_violations(
    config: ResolvedGenerationConfig, prompt_tokens: int, output_tokens: int
) -> Iterator[FieldViolation]:
    """Yield a refusal of log-probabilities that are too many to be sent as one answer."""
    asked = (("logprobs", output_tokens), ("prompt_logprobs", prompt_tokens))
    listed = {
        name: tokens * (1 + (alternatives and alternatives + 1))
        for name, tokens in asked
        if (alternatives := getattr(config, name)) is not None
    }
    total = sum(listed.values())
    if total > MAX_LISTED_LOGPROBS:
        for name, count in listed.items():
            rule = f"asks for {count} values with its alternatives, of {MAX_LISTED_LOGPROBS} in all"
            yield FieldViolation(f"settings.{name}", rule)


def _id_violations(
    model: LoadedModel, request: GenerationRequest, config: ResolvedGenerationConfig
) -> Iterator[FieldViolation]:
    for path, ids in _id_lists(request, config):
        yield from islice(_outside(model.vocabulary_size, path, ids), _MOST_OF_A_LIST)


def _id_lists(
    request: GenerationRequest, config: ResolvedGenerationConfig
) -> Iterator[tuple[str, Iterable[tuple[int, int]]]]:
    """Yield each list of token ids with its path; `{}` in it is the place that each id has."""
    if isinstance(request.prompt, TokenPrompt):
        yield "token_ids.ids[{}]", enumerate(request.prompt.token_ids)
    if request.eos_token_id is not None:
        yield "settings.eos_token_id", ((0, request.eos_token_id),)
    yield "settings.logit_bias[{}]", ((token, token) for token in sorted(config.logit_bias))
    yield "settings.allowed_token_ids", enumerate(sorted(config.allowed_token_ids or ()))
    yield "settings.banned_token_ids", enumerate(sorted(config.banned_token_ids))


def _outside(
    vocabulary: int, path: str, tokens: Iterable[tuple[int, int]]
) -> Iterator[FieldViolation]:
    """Yield a violation for each id that the vocabulary lacks."""
    for place, token in tokens:
        if not 0 <= token < vocabulary:
            description = f"must be a token id from 0 to {vocabulary - 1}, got {token}"
            yield FieldViolation(path.format(place), description)
