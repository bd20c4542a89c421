"""Many outputs of one request under different seeds, and their law."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from exactness.law import Law, law_of
from exactness.served import Served, prepared_request
from exactness.statistics import chi_square_p
from exactness.subject import Subject
from outrider.v1.generation_pb2 import Generation
from service.speculation.contract import Tokens
from service.speculation.options import SchedulerOptions


@dataclass(frozen=True, slots=True)
class Sample:
    """Outputs and how often each occurred; `accepted` of `judged` proposals were."""

    outputs: Counter[Tokens]
    accepted: int = 0
    judged: int = 0

    @property
    def size(self) -> int:
        """Return the number of outputs."""
        return self.outputs.total()

    def p_values(self, law: Law) -> Iterator[tuple[str, float]]:
        """Yield how well whole outputs, each position and each pair of neighbours fit a law."""
        length = max(map(len, law))
        for name, view in _views(length):
            yield name, chi_square_p(_seen(self.outputs, view), _seen(law, view))

    def worst(self, law: Law) -> tuple[str, float]:
        """Return the view that fits worst, and its p-value."""
        return min(self.p_values(law), key=lambda pair: pair[1])


def draw(subject: Subject, asked: Generation, seeds: range) -> Sample:
    """Serve a request once for each seed, eight at a time, drafting ahead where that can be."""
    served = Served(subject, SchedulerOptions())
    messages = []
    for seed in seeds:
        message = Generation()
        message.CopyFrom(asked)
        message.settings.seed = seed
        messages.append(message)
    outputs: Counter[Tokens] = Counter()
    accepted = judged = 0
    for answer in served.answers(messages):
        outputs[answer.checked.tokens] += 1
        accepted += sum(each.accepted_tokens for each in answer.rounds)
        judged += sum(each.judged_tokens for each in answer.rounds)
    return Sample(outputs, accepted, judged)


def law_of_request(subject: Subject, asked: Generation) -> Law:
    """Return the law of a request's output, by the target alone."""
    _, prepared = prepared_request(subject.model, asked)
    target, length = subject.model.target, prepared.admitted.max_tokens
    vocabulary = tuple(range(subject.model.vocabulary_size))
    return law_of(target, prepared.sampling, length, vocabulary)


def _views(length: int) -> Iterator[tuple[str, slice]]:
    yield "whole outputs", slice(None)
    for place in range(length):
        yield f"position {place}", slice(place, place + 1)
    for place in range(length - 1):
        yield f"positions {place} and {place + 1}", slice(place, place + 2)


def _seen(weights: Mapping[Tokens, float], view: slice) -> dict[Tokens, float]:
    """Return the weights of what a view shows of each output."""
    seen: dict[Tokens, float] = {}
    for output, weight in weights.items():
        shown = output[view]
        seen[shown] = seen.get(shown, 0) + weight
    return seen
