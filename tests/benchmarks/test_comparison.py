import pytest

from benchmarks.bench import Bench
from benchmarks.client import Answer
from benchmarks.comparison import Pair, compare, speed
from benchmarks.prompts import Prompt
from benchmarks.server import serving
from outrider.v1.statistics_pb2 import RequestStatistics

PROMPT = Prompt("one", "copying", "Write this again: one two three.")


def answered(seconds: float, decoding: float, *tokens: int, **counted: int) -> Answer:
    return Answer(tokens, seconds, decoding, RequestStatistics(**counted))


def test_speed_is_the_ratio_of_medians_after_the_first_token() -> None:
    plain = tuple(answered(1.0 + time, time, 7, 8, 9) for time in (2.0, 4.0, 9.0))
    speculative = tuple(
        answered(1.0 + time, time, 7, 8, 9, rounds=1, judged_tokens=2, accepted_tokens=1)
        for time in (1.0, 2.0, 3.0)
    )

    found = speed([Pair(PROMPT, plain, speculative)])

    assert (4.0 / 2.0, 5.0 / 3.0) == (found.decoding, found.request)
    assert (2.0, 0.5, 3) == (found.tokens_a_pass, found.acceptance_rate, found.tokens)
    assert found.identical


def test_speed_of_outputs_that_differ_says_so() -> None:
    pair = Pair(PROMPT, (answered(2.0, 1.0, 7, 8),), (answered(2.0, 1.0, 7, 9, plain_steps=1),))

    assert not speed([pair]).identical


@pytest.mark.asyncio
async def test_compare_asks_a_server_plain_and_speculatively() -> None:
    """A server process of the scripted engine answers; what speculation is on is its choice."""
    told: list[str] = []
    bench = Bench(quick=True, repetitions=2, tell=lambda step, done, total: told.append(step))

    async with serving("--engine", "scripted") as server:
        (pair,) = await compare(bench, server, [PROMPT])
        assert 0 < server.resident_bytes()

    assert pair.identical
    assert (2, 2) == (len(pair.plain), len(pair.speculative))
    assert 0 == pair.plain[0].statistics.rounds < pair.rounds
    assert ["one"] == told


@pytest.mark.asyncio
async def test_serving_reports_why_a_server_did_not_start() -> None:
    with pytest.raises(RuntimeError, match="engine"):
        async with serving("--engine", "steam"):
            pass
