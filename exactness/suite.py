"""Which checks run on which models, and how much of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from exactness.checks.determinism import check_determinism
from exactness.checks.distribution import check_distribution, check_first_tokens
from exactness.checks.greedy import check_greedy, check_settings
from exactness.checks.logprobs import check_logprobs, check_prompt_logprobs
from exactness.checks.parameters import check_parameters
from exactness.models.onnx import bundled, tiny
from exactness.models.scripted import scripted, scripted_small
from exactness.models.staged import staged
from exactness.proof import Stage
from exactness.result import Result

Check = partial[Result]

DISTRIBUTIONS = ("own-law", "mostly-right")
"""Scripted drafts: one with a distribution of its own, one that is sure of itself."""

TINY_DISTRIBUTIONS = ("near", "far", "guesses")
REAL_DISTRIBUTIONS = ("guesses", "knows most")


@dataclass(frozen=True, slots=True)
class Work:
    """How much is done.

    `combinations` serves the small models in every way and not in pairs only. `kinds` bounds the
    combinations of settings that determinism is looked at with, None for all pairs.
    """

    tokens: int
    combinations: bool
    kinds: int | None
    samples: int


FULL = Work(tokens=12, combinations=True, kinds=None, samples=600)
REAL = Work(tokens=8, combinations=False, kinds=6, samples=400)
SHORT = Work(tokens=10, combinations=False, kinds=6, samples=40)

DRAWN, DRAWN_IN_SHORT = 300, 150
"""Outputs for each field that acts on sampling: enough to tell its law from that without it."""


def short_checks() -> Iterator[Check]:
    """Yield what runs in a minute: a part of most checks, without weights."""
    timed, small = scripted(takes_time=True), scripted_small(takes_time=True)
    yield partial(check_greedy, timed, SHORT.tokens, all_of_them=False)
    yield partial(check_determinism, timed, SHORT.tokens, SHORT.kinds)
    yield partial(check_distribution, small, SHORT.samples, DISTRIBUTIONS[:1])
    yield partial(check_logprobs, timed, SHORT.tokens // 2)
    yield partial(check_parameters, Stage(staged(), DISTRIBUTIONS[:1], (3,), DRAWN_IN_SHORT))


def _scripted_checks(folder: Path, bundle: Path | None) -> Iterator[Check]:
    del folder, bundle
    for takes_time in (False, True):
        subject = scripted(takes_time=takes_time)
        yield partial(check_greedy, subject, FULL.tokens, all_of_them=FULL.combinations)
        yield partial(check_settings, subject, FULL.tokens)
        yield partial(check_determinism, subject, FULL.tokens, FULL.kinds)
        yield partial(check_logprobs, subject, FULL.tokens)
        yield partial(check_prompt_logprobs, subject)
    small = scripted_small(takes_time=True)
    yield partial(check_distribution, small, FULL.samples, DISTRIBUTIONS)
    proposers = ("mostly-right", "own-law", "wrong")
    yield partial(check_parameters, Stage(staged(), proposers, (1, 3, 5), DRAWN))


def _tiny_checks(folder: Path, bundle: Path | None) -> Iterator[Check]:
    del bundle
    subject = tiny(folder)
    yield partial(check_greedy, subject, FULL.tokens, all_of_them=FULL.combinations)
    yield partial(check_settings, subject, FULL.tokens)
    yield partial(check_determinism, subject, FULL.tokens, FULL.kinds)
    yield partial(check_distribution, subject, FULL.samples, TINY_DISTRIBUTIONS)
    yield partial(check_logprobs, subject, FULL.tokens)
    yield partial(check_prompt_logprobs, subject)


def _bundle_checks(folder: Path, bundle: Path | None) -> Iterator[Check]:
    del folder
    subject = bundled(bundle)
    yield partial(check_greedy, subject, REAL.tokens, all_of_them=REAL.combinations)
    yield partial(check_settings, subject, REAL.tokens)
    yield partial(check_determinism, subject, REAL.tokens, REAL.kinds)
    yield partial(check_first_tokens, subject, REAL.samples, REAL_DISTRIBUTIONS)
    yield partial(check_logprobs, subject, REAL.tokens, ("temperature 1",), 2)
    yield partial(check_prompt_logprobs, subject)


ENGINES: Mapping[str, Callable[[Path, Path | None], Iterator[Check]]] = {
    "scripted": _scripted_checks,
    "tiny": _tiny_checks,
    "bundle": _bundle_checks,
}
"""Every check of an engine; models are built in a folder, and None is the default bundle."""
