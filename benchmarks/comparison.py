"""Speculative against plain: the same prompts, in turns, so that drift strikes both alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.bench import Bench
from benchmarks.client import PLAIN, SPECULATIVE, Answer, Wanted, answer
from benchmarks.prompts import Prompt
from benchmarks.server import ServerProcess


@dataclass(frozen=True, slots=True)
class Pair:
    """One prompt's answers, a plain and a speculative one for each repetition."""

    prompt: Prompt
    plain: tuple[Answer, ...]
    speculative: tuple[Answer, ...]

    @property
    def identical(self) -> bool:
        """Whether all answers are the same tokens."""
        return len({one.tokens for one in (*self.plain, *self.speculative)}) == 1

    @property
    def rounds(self) -> int:
        """Return the verified blocks of one speculative answer."""
        return self.speculative[0].statistics.rounds

    @property
    def passes(self) -> int:
        """Return the passes after the prompt of one speculative answer, plain steps included."""
        return self.rounds + self.speculative[0].statistics.plain_steps


@dataclass(frozen=True, slots=True)
class Speed:
    """What speculation brought over some prompts; ratios above one are gains.

    `decoding` looks at the time after the first token, `request` at whole calls
    with their prompts; both are sums of each prompt's median. `tokens_a_pass`
    counts what one target pass commits, which is one without speculation.
    """

    prompts: int
    decoding: float
    request: float
    tokens: int
    plain_tokens_per_second: float
    speculative_tokens_per_second: float
    tokens_a_pass: float
    acceptance_rate: float | None
    identical: bool


async def compare(
    bench: Bench, server: ServerProcess, prompts: Sequence[Prompt]
) -> tuple[Pair, ...]:
    """Answer every prompt plain and speculatively, alternating which comes first."""
    wanted = [Wanted(bench.size(128, 32), mode) for mode in (PLAIN, SPECULATIVE)]
    await answer(server, prompts[0].text, wanted[1])
    pairs: list[Pair] = []
    for index, prompt in enumerate(prompts):
        bench.tell(prompt.name, index, len(prompts))
        answers: tuple[list[Answer], list[Answer]] = ([], [])
        for repetition in range(bench.repetitions):
            order = (0, 1) if (index + repetition) % 2 else (1, 0)
            for which in order:
                answers[which].append(await answer(server, prompt.text, wanted[which]))
        pairs.append(Pair(prompt, tuple(answers[0]), tuple(answers[1])))
    return tuple(pairs)


def speed(pairs: Sequence[Pair]) -> Speed:
    """Sum up some prompts."""
    plain = sum(median(one.decoding for one in pair.plain) for pair in pairs)
    speculative = sum(median(one.decoding for one in pair.speculative) for pair in pairs)
    whole_plain = sum(median(one.seconds for one in pair.plain) for pair in pairs)
    whole = sum(median(one.seconds for one in pair.speculative) for pair in pairs)
    decoded = sum(len(pair.plain[0].tokens) - 1 for pair in pairs)
    judged = sum(pair.speculative[0].statistics.judged_tokens for pair in pairs)
    accepted = sum(pair.speculative[0].statistics.accepted_tokens for pair in pairs)
    return Speed(
        prompts=len(pairs),
        decoding=plain / speculative,
        request=whole_plain / whole,
        tokens=decoded + len(pairs),
        plain_tokens_per_second=decoded / plain,
        speculative_tokens_per_second=decoded / speculative,
        tokens_a_pass=decoded / sum(pair.passes for pair in pairs),
        acceptance_rate=accepted / judged if judged else None,
        identical=all(pair.identical for pair in pairs),
    )
