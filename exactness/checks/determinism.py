"""Seed, proposer and width fix a sampled output; neighbours, order and lookahead do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from exactness.pairwise import pairwise
from exactness.result import Result
from exactness.served import Crowd, Served
from exactness.subject import Subject, drafted, generation
from exactness.variants import variants
from outrider.v1.generation_pb2 import Generation
from service.speculation.contract import Tokens
from service.speculation.options import SchedulerOptions

WIDTHS = (1, 2, 4, 7)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What must not show in an output."""

    name: str
    crowd: Crowd
    chunk: int = 128
    lookahead: bool = True
    backwards: bool = False

    def outputs(self, subject: Subject, asked: Sequence[Generation]) -> list[Tokens]:
        """Serve requests in these surroundings; return their outputs, in the given order."""
        options = SchedulerOptions(prefill_chunk_tokens=self.chunk)
        served = Served(subject, options.with_lookahead(enabled=self.lookahead))
        step = -1 if self.backwards else 1
        return [answer.checked.tokens for answer in served.answers(asked[::step], self.crowd)][
            ::step
        ]


ALONE = Surroundings("alone", Crowd(lanes=1), lookahead=False)
OTHERS = (
    Surroundings("alone, lookahead", Crowd(lanes=1)),
    Surroundings("eight at once", Crowd()),
    Surroundings("eight at once, no lookahead", Crowd(), lookahead=False),
    Surroundings("backwards, one after another", Crowd(gap=2), backwards=True),
    Surroundings("three at a time, prompts in pieces", Crowd(lanes=3, gap=1), chunk=3),
)


def check_determinism(subject: Subject, tokens: int, kinds: int | None) -> Result:
    """Compare outputs alone and in company, under at most so many kinds of settings."""
    by_name = variants(subject)
    axes = {"variant": tuple(by_name), "proposer": subject.proposers, "width": WIDTHS}
    cases = 0
    distinct: set[bool] = set()
    failures: list[str] = []
    for case in pairwise(axes)[:kinds]:
        settings = by_name[str(case["variant"])]
        how = drafted(str(case["proposer"]), int(str(case["width"])))
        asked = [generation(prompt, settings, how) for prompt in subject.prompts]
        for seed, message in enumerate(asked):
            message.settings.max_new_tokens = tokens
            message.settings.seed = seed
        alone = ALONE.outputs(subject, asked)
        for others in OTHERS:
            cases += len(asked)
            if others.outputs(subject, asked) != alone:
                failures.append(f"{case}: another output {others.name}")
        distinct.add(len(set(alone)) > 1)
    if True not in distinct:
        failures.append("every seed gives one output: nothing is shown")
    return Result("same seed = same output", subject.name, cases, "0 differ", tuple(failures))
