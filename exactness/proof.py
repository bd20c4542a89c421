"""How the effect of one field of a request is shown, plain and with speculation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from textwrap import shorten
from typing import Protocol

from exactness.answer import Answer
from exactness.law import Law
from exactness.sample import draw, law_of_request
from exactness.served import Served
from exactness.statistics import SIGNIFICANCE, total_variation
from exactness.subject import PLAIN, Subject, drafted
from outrider.v1.generation_pb2 import Generation
from outrider.v1.settings_pb2 import SpeculationSettings
from service.errors import RequestError, UnsupportedField
from service.rpc.validation import validate

View = Callable[[Answer], object]

LEAST_SHIFT = 0.05


@dataclass(frozen=True, slots=True)
class Stage:
    """Where proofs are made: a model, who drafts and how far, and how many outputs are drawn."""

    subject: Subject
    proposers: tuple[str, ...]
    widths: tuple[int, ...]
    samples: int

    def speculations(self) -> Iterator[tuple[str, SpeculationSettings]]:
        """Yield ways to speculate, by a name."""
        for proposer in self.proposers:
            for width in self.widths:
                yield f"{proposer}, width {width}", drafted(proposer, width)


class Proof(Protocol):
    """Shows what a field does."""

    @property
    def acts_on(self) -> str:
        """Return on what the field acts, in a word or two."""

    def problems(self, stage: Stage) -> Iterator[str]:
        """Yield what speaks against it."""


def tokens_and_end(answer: Answer) -> object:
    """Return the tokens, the text, and how they ended."""
    return answer.tokens, answer.text, answer.end


@dataclass(frozen=True, slots=True)
class Shows:
    """Greedy: what a client sees changes with the field, and alike with speculation."""

    without: Generation
    given: Generation
    view: View = tokens_and_end
    acts_on: str = "greedy output, and sampled"

    def problems(self, stage: Stage) -> Iterator[str]:
        plain = _answers(stage, PLAIN, self.without, self.given)
        before, after = map(self.view, plain)
        if before == after:
            yield f"changes nothing: {_short(after)}"
        drafts = 0
        for name, how in stage.speculations():
            answers = _answers(stage, how, self.without, self.given)
            drafts += sum(each.judged_tokens for answer in answers for each in answer.rounds)
            for which, expected, answer in zip(
                ("without", "with"), (before, after), answers, strict=True
            ):
                if self.view(answer) != expected:
                    found = _short(self.view(answer))
                    yield f"{which} it, {name}: {found} and not {_short(expected)}"
        if not drafts:
            yield "nothing was proposed"


@dataclass(frozen=True, slots=True)
class Shifts:
    """Sampled: the law of the output changes with the field, and samples follow the new one.

    The new law is told apart from the old one by the same samples, so that a field that
    speculation drops is seen.
    """

    without: Generation
    given: Generation
    acts_on: str = "sampled output"

    def problems(self, stage: Stage) -> Iterator[str]:
        old, new = (law_of_request(stage.subject, each) for each in (self.without, self.given))
        shift = total_variation(old, new)
        if shift < LEAST_SHIFT:
            yield f"hardly shifts the law, by {shift:.3f}"
        speculations = {"plain": PLAIN} | {name: drafted(name, 2) for name in stage.proposers}
        for name, how in speculations.items():
            asked = _with(self.given, how)
            yield from _misfits(name, stage, asked, old, new)


def _misfits(name: str, stage: Stage, asked: Generation, old: Law, new: Law) -> Iterator[str]:
    sample = draw(stage.subject, asked, range(stage.samples))
    view, p = sample.worst(new)
    if p < SIGNIFICANCE:
        yield f"{name}: {view} do not follow the law, p = {p:.1e}"
    if sample.worst(old)[1] > SIGNIFICANCE:
        yield f"{name}: {sample.size} samples cannot tell it from its absence"


@dataclass(frozen=True, slots=True)
class Seeds:
    """Sampled: another seed gives another output, the same seed the same one."""

    asked: Generation
    acts_on: str = "the draws of sampled output"

    def problems(self, stage: Stage) -> Iterator[str]:
        speculations = {"plain": PLAIN} | dict(stage.speculations())
        for name, how in speculations.items():
            first, again, other = (
                answer.tokens for answer in _answers(stage, how, *map(self._seeded, (0, 0, 1)))
            )
            if first != again:
                yield f"{name}: one seed gave two outputs"
            if first == other:
                yield f"{name}: two seeds gave one output"

    def _seeded(self, seed: int) -> Generation:
        asked = _with(self.asked, PLAIN)
        asked.settings.seed = seed
        return asked


@dataclass(frozen=True, slots=True)
class Steers:
    """What is said of speculation changes with the field, and the output does not."""

    without: SpeculationSettings
    given: SpeculationSettings
    asked: Generation
    view: View
    acts_on: str = "speculation, never the output"

    def problems(self, stage: Stage) -> Iterator[str]:
        (plain,) = _answers(stage, PLAIN, self.asked)
        (without,) = _answers(stage, self.without, self.asked)
        (given,) = _answers(stage, self.given, self.asked)
        if self.view(without) == self.view(given):
            yield f"changes nothing: {self.view(given)}"
        if not plain.tokens == without.tokens == given.tokens:
            yield "changes the output"


@dataclass(frozen=True, slots=True)
class Refused:
    """Not served: a request that sets the field is refused by its name."""

    given: Generation
    path: str
    acts_on: str = "nothing yet: refused by name"

    def problems(self, stage: Stage) -> Iterator[str]:
        del stage
        try:
            validate(self.given)
        except UnsupportedField as refused:
            if [each.field for each in refused.violations] != [self.path]:
                yield f"{refused} names something else"
        except RequestError as refused:
            yield f"is refused as if it were wrong: {refused}"
        else:
            yield "is accepted, and does nothing"


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """What the field does is no matter of one engine; a test shows it, found by path and name."""

    path: str
    test: str
    acts_on: str = "which requests run, and how long"

    def problems(self, stage: Stage) -> Iterator[str]:
        del stage
        return iter(())


def _short(value: object) -> str:
    """Return a value as far as a line of a report holds it."""
    return shorten(str(value), 160, placeholder=" …")


def _with(asked: Generation, how: SpeculationSettings) -> Generation:
    copy = Generation()
    copy.CopyFrom(asked)
    copy.speculation.CopyFrom(how)
    return copy


def _answers(stage: Stage, how: SpeculationSettings, *asked: Generation) -> list[Answer]:
    """Serve the requests at once, and demand that none fails."""
    answers = Served(stage.subject).answers([_with(each, how) for each in asked])
    return [answer.checked for answer in answers]
