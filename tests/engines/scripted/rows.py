"""Small rows to process, and the processing of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from engines.scripted.sampling import ScriptedSampler
from engines.scripted.vocabulary import VOCABULARY_SIZE
from service.generation.config import ResolvedGenerationConfig
from service.speculation.contract import Constraint, History, SamplingInput
from tests.contract.constraints import Outputs
from tests.neutral import SAMPLED

NOTHING = History((), ())
END = 257
# Probabilities 0.5, 0.25, 0.125, 0.125.
LOGITS = ((1, math.log(4)), (4, math.log(2)), (6, 0.0), (9, 0.0))


def only(*outputs: tuple[int, ...], field: str = "settings.constraint") -> Outputs:
    """Return the constraint that permits these outputs."""
    return Outputs(outputs, END, field=field)


def sampler(
    *,
    config: ResolvedGenerationConfig = SAMPLED,
    constraint: Constraint | None = None,
    ends=frozenset(),
    coins=None,
    breakers=frozenset(),
    size: int = VOCABULARY_SIZE,
    **settings,
) -> ScriptedSampler:
    """Return a fresh sampling state."""
    return ScriptedSampler(
        SamplingInput(
            config=replace(config, **settings),
            prompt=(),
            vocabulary_size=size,
            end_token_ids=frozenset(ends),
            run_breakers=frozenset(breakers),
            coins=coins,
            constraint=constraint,
        )
    )


def row(sampler: ScriptedSampler, history: History = NOTHING, logits=LOGITS) -> dict[int, float]:
    """Return a processed row's tokens that have more than a trace of probability."""
    processed = sampler.process(logits, history)
    pairs = zip(processed.tokens, processed.probabilities, strict=True)
    return {token: probability for token, probability in pairs if probability > 1e-9}


def kept(history: History = NOTHING, logits=LOGITS, **settings) -> set[int]:
    """Return the tokens that settings leave in a row."""
    return set(row(sampler(**settings), history, logits))


def shares(scores: Mapping[int, float]):
    """Return scores as parts of one."""
    total = sum(scores.values())
    return {token: score / total for token, score in scores.items()}
