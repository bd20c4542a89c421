"""What shifts logits: a request's bias, and penalties on what was said before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from engines.scripted.distribution import Weights, saturated
from engines.scripted.dry import dry_penalties
from service.generation.config import ResolvedGenerationConfig
from service.speculation.contract import History, Tokens


def biased(logits: Weights, bias: Mapping[int, float]) -> Weights:
    """Add to each logit the bias of its token."""
    return {token: saturated(logit + bias.get(token, 0.0)) for token, logit in logits.items()}


def penalised(
    logits: Weights, history: History, config: ResolvedGenerationConfig, breakers: frozenset[int]
) -> Weights:
    """Apply the penalties on repetition, frequency and presence, and then DRY.

    The first and the last look at the prompt too; the other two at the output alone. All look
    at the last `repeat_last_n` tokens.
    """
    recent = window((*history.prompt, *history.generated), config.repeat_last_n)
    counts = Counter(window(history.generated, config.repeat_last_n))
    runs = dry_penalties(recent, config.dry, breakers)
    seen = frozenset(recent)
    result: Weights = {}
    for token, logit in logits.items():
        ratio = config.repetition_penalty if token in seen else 1.0
        repeated = logit / ratio if logit > 0.0 else logit * ratio
        presence = config.presence_penalty if counts[token] else 0.0
        counted = saturated(repeated) - config.frequency_penalty * counts[token] - presence
        result[token] = saturated(saturated(counted) - runs.get(token, 0.0))
    return result


def window(tokens: Tokens, length: int) -> Tokens:
    """Return the last tokens: all for a negative length, none for zero."""
    return tokens if length < 0 else tokens[max(0, len(tokens) - length) :]
