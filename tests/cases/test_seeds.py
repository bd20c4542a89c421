"""Where randomness starts: a seed repeats an output, and no seed means a new one each time."""

from __future__ import annotations

import pytest

from engines.scripted.law import HashLaw
from tests.cases.asking import asked, tokens_of
from tests.cases.stage import staged
from tests.service.rpc.harness import complete, served

pytestmark = pytest.mark.asyncio

SAMPLED = {"temperature": 1.0, "max_new_tokens": 32}


def seeded(seed: int):
    return asked("once", "own-law", 4, seed=seed, **SAMPLED)


async def test_b06_a_seed_repeats_its_output_under_speculation_and_is_echoed():
    """B06: the seed is ignored once a draft takes part; 42 five times, and then 43."""
    async with served(staged(HashLaw())) as server:
        answers = [await complete(server, seeded(42)) for _ in range(5)]
        other = await complete(server, seeded(43))

    assert 1 == len({tokens_of(answer) for answer in answers})
    assert tokens_of(other) != tokens_of(answers[0])
    assert 32 == len(tokens_of(answers[0]))
    assert {42} == {answer.admitted.settings.seed for answer in answers}
    assert answers[0].admitted.speculation.fixed


async def test_b06_requests_without_a_seed_differ_and_tell_the_seed_they_got():
    """B06: they share one generator that starts anew each time; eight of them, one by one."""
    async with served(staged(HashLaw())) as server:
        answers = [await complete(server, asked("once", "own-law", 4, **SAMPLED)) for _ in range(8)]
        told = answers[3].admitted.settings.seed
        repeated = [await complete(server, seeded(told)) for _ in range(2)]

    assert 1 < len({tokens_of(answer) for answer in answers})
    assert 8 == len({answer.admitted.settings.seed for answer in answers})
    assert tokens_of(repeated[0]) == tokens_of(repeated[1])


async def test_b06_zero_is_a_seed_like_any_other():
    """B06: zero read as absence would give another output each time."""
    async with served(staged(HashLaw())) as server:
        first, second = [await complete(server, seeded(0)) for _ in range(2)]

    assert tokens_of(first) == tokens_of(second)
    assert first.admitted.settings.HasField("seed")
    assert 0 == first.admitted.settings.seed
