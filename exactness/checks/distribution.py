"""Sampled output with speculation follows the target's own distribution."""

from __future__ import annotations

from exactness.result import Result
from exactness.sample import draw, law_of_request
from exactness.statistics import SIGNIFICANCE, total_variation, total_variation_bound
from exactness.subject import Subject, drafted, generation
from exactness.variants import sampled, variants

LENGTH = 3
WIDTH = 2


def check_distribution(subject: Subject, samples: int, proposers: tuple[str, ...]) -> Result:
    """Draw outputs of three tokens under every variant, and test them against their exact law.

    By chi-square: whole outputs, each position, each pair of neighbouring positions.
    """
    cases, lowest, failures = 0, 1.0, []
    accepted = judged = 0
    for name, settings in variants(subject).items():
        settings.max_new_tokens = LENGTH
        law = law_of_request(subject, generation(subject.prompts[-1], settings))
        for proposer in proposers:
            asked = generation(subject.prompts[-1], settings, drafted(proposer, WIDTH))
            sample = draw(subject, asked, range(samples))
            accepted, judged = accepted + sample.accepted, judged + sample.judged
            view, p = sample.worst(law)
            cases, lowest = cases + sample.size, min(lowest, p)
            if p < SIGNIFICANCE:
                failures.append(f"{name}, drafted by {proposer}: {view} have p = {p:.1e}")
    if not 0 < accepted < judged:
        failures.append("proposals were all right or all wrong: nothing is shown")
    worst = f"p = {lowest:.1e} ≥ {SIGNIFICANCE:.0e}; {accepted:,} of {judged:,} accepted"
    return Result("sampled ~ target", subject.name, cases, worst, tuple(failures))


def check_first_tokens(subject: Subject, samples: int, proposers: tuple[str, ...]) -> Result:
    """Draw the first three tokens of a real model, and bound their distance from their law."""
    settings = sampled(subject, max_new_tokens=LENGTH, temperature=1.3)
    prompt = subject.prompts[0]
    law = law_of_request(subject, generation(prompt, settings))
    bound = total_variation_bound(law, samples)
    farthest, failures = 0.0, []
    for proposer in proposers:
        sample = draw(
            subject, generation(prompt, settings, drafted(proposer, WIDTH)), range(samples)
        )
        frequencies = {output: count / samples for output, count in sample.outputs.items()}
        distance = total_variation(frequencies, law)
        farthest = max(farthest, distance)
        if distance > bound:
            failures.append(f"drafted by {proposer}: {distance:.3f} away, above {bound:.3f}")
    worst = f"total variation {farthest:.3f} ≤ {bound:.3f}"
    cases = samples * len(proposers)
    return Result("first tokens ~ target", subject.name, cases, worst, tuple(failures))
