"""Log-probabilities are those of each token's own row, with speculation on and off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from exactness.answer import Answer, Scored
from exactness.law import Reading
from exactness.result import Result
from exactness.served import Crowd, Served, prepared_request
from exactness.subject import PLAIN, Subject, drafted, generation
from exactness.variants import sampled, variants
from outrider.v1.generation_pb2 import Generation
from outrider.v1.settings_pb2 import GenerationSettings
from service.speculation.contract import TokenLogprob
from service.speculation.options import SchedulerOptions

NEAR = 1e-4
ALTERNATIVES = 3
WIDTH = 4


KINDS = ("temperature 1", "all truncations", "XTC", "Mirostat 2")


def check_logprobs(
    subject: Subject, tokens: int, sampled_kinds: tuple[str, ...] = KINDS, prompts: int = 4
) -> Result:
    """Compare what is said of each committed token with its row, read from the target alone.

    Greedily and sampled, by every proposer and by none: tokens that sampling leads elsewhere are
    compared at their own histories.
    """
    kinds = {"greedy": GenerationSettings(temperature=0.0, repetition_penalty=1.2)}
    kinds |= {name: variants(subject)[name] for name in sampled_kinds}
    cases, farthest, failures = 0, 0.0, []
    speculations = {name: drafted(name, WIDTH) for name in subject.proposers} | {"nothing": PLAIN}
    for (kind, settings), (proposer, how) in product(kinds.items(), speculations.items()):
        settings.MergeFrom(GenerationSettings(max_new_tokens=tokens, logprobs=ALTERNATIVES, seed=7))
        asked = [generation(prompt, settings, how) for prompt in subject.prompts[-prompts:]]
        for message, answer in zip(asked, Served(subject).answers(asked), strict=True):
            gaps = list(_gaps(subject, message, answer.checked))
            cases += len(gaps)
            farthest = max(farthest, *gaps)
            if len(gaps) != len(answer.tokens) or max(gaps) > NEAR:
                failures.append(f"{kind}, drafted by {proposer}: {max(gaps):.1e} apart")
    worst = f"{farthest:.1e} nats ≤ {NEAR:.0e}"
    return Result("log-probabilities", subject.name, cases, worst, tuple(failures))


def check_prompt_logprobs(subject: Subject) -> Result:
    """Compare the prompt's log-probabilities fed whole and alone, in pieces and in company."""
    settings = GenerationSettings(temperature=0.0, max_new_tokens=2, prompt_logprobs=ALTERNATIVES)
    # Penalties and filters act on the output alone.
    changed = sampled(subject, repetition_penalty=1.7, max_new_tokens=2, seed=1)
    changed.prompt_logprobs = ALTERNATIVES
    alone = _prompts_scored(subject, settings, 128, Crowd(lanes=1))
    cases, farthest, failures = 0, 0.0, []
    for chunk, lanes, given in product((1, 3, 7, 128), (1, 3, 8), (settings, changed)):
        scored = _prompts_scored(subject, given, chunk, Crowd(lanes))
        for expected, found in zip(alone, scored, strict=True):
            gap = max(map(_gap, expected, found), default=0.0)
            cases, farthest = cases + len(found), max(farthest, gap)
            if len(expected) != len(found) or gap > NEAR:
                failures.append(f"in pieces of {chunk}, {lanes} at once: {gap:.1e} apart")
    worst = f"{farthest:.1e} nats ≤ {NEAR:.0e}"
    return Result("prompt log-probabilities", subject.name, cases, worst, tuple(failures))


def _prompts_scored(
    subject: Subject, settings: GenerationSettings, chunk: int, crowd: Crowd
) -> list[Sequence[Scored]]:
    asked = [generation(prompt, settings) for prompt in subject.prompts]
    served = Served(subject, SchedulerOptions(prefill_chunk_tokens=chunk))
    scored = [answer.checked.prompt_logprobs for answer in served.answers(asked, crowd)]
    for prompt, found in zip(subject.prompts, scored, strict=True):
        if len(found) != len(prompt) - 1:
            raise AssertionError(f"{len(found)} of {len(prompt) - 1} prompt tokens were scored")
    return list(scored)


def _gaps(subject: Subject, message: Generation, answer: Answer) -> Iterator[float]:
    """Yield how far each committed token's numbers are from those of its own row."""
    _, prepared = prepared_request(subject.model, message)
    reading = Reading.begin(subject.model.target, prepared.sampling)
    for token, scored in zip(answer.tokens, answer.logprobs, strict=True):
        distribution, expected = reading.scored(token, ALTERNATIVES)
        yield _gap(_as_scored(expected), scored)
        reading = reading.follow(token, distribution)


def _as_scored(row: TokenLogprob) -> Scored:
    return Scored(row.logprob, row.alternatives)


def _gap(expected: Scored, found: Scored) -> float:
    """Return the largest difference; infinite where other alternatives are named."""
    if [token for token, _ in expected.alternatives] != [token for token, _ in found.alternatives]:
        return float("inf")
    pairs = zip(expected.alternatives, found.alternatives, strict=True)
    beside = [abs(one - other) for (_, one), (_, other) in pairs]
    return max(abs(expected.logprob - found.logprob), *beside)
