"""What the target alone says: rows read one by one, and the exact law of an output.

A row is computed from a slot of its own that holds nothing but the history before it; the core
has no part in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product

from service.generation.randomness import AddressedRandomness
from service.speculation.contract import (
    Distribution,
    History,
    PrefillInput,
    Sampler,
    SamplingInput,
    Target,
    TargetRows,
    TokenLogprob,
    Tokens,
)

Law = dict[Tokens, float]
"""Outputs and their probabilities, which sum to one but for what is negligible."""

NEGLIGIBLE = 1e-9
"""Tokens less likely than this are left out: no sample here is large enough to see one."""


MOST_OUTPUTS = 4096
"""Each takes a row of the target to look at."""


@contextmanager
def row_after(
    target: Target, prompt: Tokens, generated: Tokens, sampler: Sampler
) -> Iterator[TargetRows]:
    """Compute the one row after a prompt and an output."""
    slot = target.open()
    try:
        tokens = (*prompt, *generated)
        history = History(prompt, generated)
        lane = PrefillInput(slot, 0, tokens, is_last=True, history=history, sampler=sampler)
        submission = target.prefill([lane])
        try:
            submission.completion.wait()
            yield submission.output.rows(0)
        finally:
            submission.output.release()
    finally:
        target.close(slot)


@dataclass(frozen=True, slots=True)
class Reading:
    """A request's sampling state after an output, and the row that follows it."""

    target: Target
    prompt: Tokens
    generated: Tokens
    sampler: Sampler

    @classmethod
    def begin(cls, target: Target, sampling: SamplingInput) -> Reading:
        """Return the reading of a request that has generated nothing."""
        return cls(target, sampling.prompt, (), target.sampler(sampling))

    def distribution(self) -> Distribution:
        """Return the processed distribution of the next token."""
        with row_after(self.target, self.prompt, self.generated, self.sampler) as rows:
            return rows.distribution(0, self.sampler)

    def scored(self, token: int, alternatives: int) -> tuple[Distribution, TokenLogprob]:
        """Return the same, and the log-probability of a token in it."""
        with row_after(self.target, self.prompt, self.generated, self.sampler) as rows:
            score = rows.logprob(0, self.sampler, token, alternatives)
            return rows.distribution(0, self.sampler), score

    def follow(self, token: int, distribution: Distribution) -> Reading:
        """Return the reading after one more token, which was drawn from the distribution."""
        sampler = self.sampler.advance(distribution, token)
        return replace(self, generated=(*self.generated, token), sampler=sampler)

    def ends(self, ends: frozenset[int]) -> bool:
        """Whether the output ends here by itself."""
        ended = bool(self.generated) and self.generated[-1] in ends
        return ended or self.sampler.grammar_is_complete()


def reading_after(target: Target, sampling: SamplingInput, output: Tokens) -> Reading:
    """Follow an output from its first token on."""
    reading = Reading.begin(target, sampling)
    for token in output:
        reading = reading.follow(token, reading.distribution())
    return reading


def top_two_gap(target: Target, sampling: SamplingInput, output: Tokens, token: int) -> float:
    """Return how far apart the two likeliest tokens after an output are, in nats."""
    _, score = reading_after(target, sampling, output).scored(token, 2)
    likeliest = score.alternatives
    return likeliest[0][1] - likeliest[1][1] if len(likeliest) > 1 else float("inf")


@dataclass(frozen=True, slots=True)
class _Coins(AddressedRandomness):
    """Coins of XTC that fall as they are told: it acts where the draw is zero."""

    key: bytes = b""
    acts: tuple[bool, ...] = ()

    def at(self, position: int) -> float:
        return 0.0 if self.acts[position] else 1.0


def law_of(target: Target, sampling: SamplingInput, length: int, vocabulary: Tokens) -> Law:
    """Return the probability of each output of at most `length` tokens of a vocabulary.

    Where XTC is on, its coins fall independently of all draws: the law is the mean of those under
    each way that they can fall.
    """
    law: Law = {}
    for acts, weight in _falls(sampling, length):
        coins = _Coins(acts=acts)
        begin = Reading.begin(target, replace(sampling, coins=coins))
        for output, probability in _walk(begin, sampling, length, vocabulary):
            law[output] = law.get(output, 0.0) + weight * probability
            if len(law) > MOST_OUTPUTS:
                raise ValueError(f"there are more than {MOST_OUTPUTS} outputs to look at")
    return law


def _falls(sampling: SamplingInput, length: int) -> Iterator[tuple[tuple[bool, ...], float]]:
    """Yield each way that the coins of XTC can fall, and its probability."""
    xtc = sampling.config.xtc
    if xtc is None:
        yield (False,) * length, 1.0
        return
    for acts in product((True, False), repeat=length):
        weight = 1.0
        for each in acts:
            weight *= xtc.probability if each else 1.0 - xtc.probability
        if weight > 0.0:
            yield acts, weight


def _walk(
    reading: Reading, sampling: SamplingInput, length: int, vocabulary: Tokens
) -> Iterator[tuple[Tokens, float]]:
    """Yield every output from a reading on, with its probability."""
    if length == 0 or reading.ends(sampling.end_token_ids):
        yield reading.generated, 1.0
        return
    distribution = reading.distribution()
    for token in vocabulary:
        probability = distribution.probability(token)
        if probability > NEGLIGIBLE:
            after = reading.follow(token, distribution)
            for output, rest in _walk(after, sampling, length - 1, vocabulary):
                yield output, probability * rest
