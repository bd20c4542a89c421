"""Greedy output with speculation is the target's own, token for token."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from exactness.answer import Answer
from exactness.law import top_two_gap
from exactness.pairwise import every, pairwise
from exactness.result import Result
from exactness.served import Crowd, Served, prepared_request
from exactness.subject import Subject, drafted, generation
from exactness.variants import shaped
from outrider.v1.settings_pb2 import GenerationSettings
from service.speculation.contract import Tokens
from service.speculation.options import SchedulerOptions

TIE = 1e-3
"""Two logits that are nearer than this may change places where rows round differently."""

WIDTHS = range(1, 9)
LANES = range(1, 9)
CHUNKS = (128, 5)
FEW_WIDTHS = (1, 3, 6)
FEW_LANES = (1, 8)


@dataclass(frozen=True, slots=True)
class Case:
    """One way to serve the prompts: by whom and how far drafted, how many at once, how fed."""

    proposer: str
    width: int
    lanes: int
    lookahead: bool
    chunk: int

    def options(self) -> SchedulerOptions:
        """Return what the scheduler is set to."""
        return SchedulerOptions(prefill_chunk_tokens=self.chunk).with_lookahead(
            enabled=self.lookahead
        )


def cases(subject: Subject, *, all_of_them: bool) -> list[Case]:
    """Return all combinations, or a selection that holds every pair."""
    select = every if all_of_them else pairwise
    axes = {
        "proposer": subject.proposers,
        "width": WIDTHS,
        "lanes": LANES,
        "lookahead": (True, False) if subject.can_overlap else (True,),
        "chunk": CHUNKS,
    }
    return [Case(**combination) for combination in select(axes)]  # type: ignore[arg-type]  # the names are the same


def check_greedy(subject: Subject, tokens: int, *, all_of_them: bool) -> Result:
    """Serve the prompts in every way, and compare with plain decoding alone and whole.

    On an engine whose rows are bit-exact the outputs are equal. Elsewhere the first difference
    must be a tie.
    """
    settings = GenerationSettings(temperature=0.0, max_new_tokens=tokens)
    verdict = _Verdict(subject)
    verdict.compare("", settings, cases(subject, all_of_them=all_of_them))
    return verdict.result("greedy = plain")


def check_settings(subject: Subject, tokens: int) -> Result:
    """Do the same under each setting that shapes greedy output, pairwise with ways to serve."""
    by_name = shaped(subject)
    axes = {
        "setting": tuple(by_name),
        "proposer": subject.proposers,
        "width": FEW_WIDTHS,
        "lanes": FEW_LANES,
    }
    ways: dict[str, list[Case]] = {}
    for chosen in pairwise(axes):
        name = str(chosen.pop("setting"))
        ways.setdefault(name, []).append(Case(**chosen, lookahead=True, chunk=5))  # type: ignore[arg-type]  # the names are the same
    verdict = _Verdict(subject)
    for name, settings in by_name.items():
        settings.MergeFrom(GenerationSettings(temperature=0.0, max_new_tokens=tokens))
        verdict.compare(f"{name}, ", settings, ways[name])
    return verdict.result("greedy = plain, by setting")


class _Verdict:
    """Counts what was equal, what was a tie, and what was neither."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._cases = 0
        self._ties: list[float] = []
        self._failures: list[str] = []
        self._accepted = 0
        self._judged = 0

    def compare(self, name: str, settings: GenerationSettings, ways: list[Case]) -> None:
        """Serve the prompts with these settings in many ways, and compare with plain decoding."""
        subject = self._subject
        asked = [generation(prompt, settings) for prompt in subject.prompts]
        alone = Served(subject, SchedulerOptions().with_lookahead(enabled=False))
        plain = [answer.checked for answer in alone.answers(asked, Crowd(lanes=1))]
        for case in ways:
            how = drafted(case.proposer, case.width, lookahead=case.lookahead)
            asked = [generation(prompt, settings, how) for prompt in subject.prompts]
            served = Served(subject, case.options())
            answers = served.answers(asked, Crowd(case.lanes, gap=1))
            for number, problem in self._problems(settings, plain, answers):
                self._failures.append(f"{name}{case}, prompt {number}: {problem}")

    def result(self, check: str) -> Result:
        """Return the row of the table."""
        ties = f"{len(self._ties)} ties" if self._ties else "0 differ"
        worst = f"{ties}; {self._accepted:,} of {self._judged:,} proposals accepted"
        if not 0 < self._accepted < self._judged:
            self._failures.append("proposals were all right or all wrong: nothing is shown")
        return Result(check, self._subject.name, self._cases, worst, tuple(self._failures))

    def _problems(
        self, settings: GenerationSettings, plain: list[Answer], answers: list[Answer]
    ) -> Iterator[tuple[int, str]]:
        for number, (expected, answer) in enumerate(zip(plain, answers, strict=True)):
            self._cases += 1
            self._accepted += sum(each.accepted_tokens for each in answer.rounds)
            self._judged += sum(each.judged_tokens for each in answer.rounds)
            problem = self._difference(number, settings, expected, answer)
            if problem:
                yield number, problem

    def _difference(
        self, number: int, settings: GenerationSettings, plain: Answer, answer: Answer
    ) -> str | None:
        """Return what is wrong with an answer, if anything is."""
        if answer.error is not None:
            return f"failed: {answer.error}"
        if (answer.tokens, answer.end, answer.events) == (plain.tokens, plain.end, plain.events):
            return None
        common = _common_length(plain.tokens, answer.tokens)
        if self._subject.model.information.bit_exact:
            return f"differs from position {common} on"
        asked = generation(self._subject.prompts[number], settings)
        _, prepared = prepared_request(self._subject.model, asked)
        target, before = self._subject.model.target, plain.tokens[:common]
        gap = top_two_gap(target, prepared.sampling, before, plain.tokens[common])
        if gap < TIE:
            self._ties.append(gap)
            return None
        return f"differs at position {common}, where the two likeliest are {gap:.2e} apart"


def _common_length(one: Tokens, other: Tokens) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)) - 1)
