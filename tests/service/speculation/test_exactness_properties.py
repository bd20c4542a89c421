"""Speculation changes nothing but speed: the core over the scripted engine, under any schedule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from hypothesis import event, given, settings
from hypothesis import strategies as st

from engines.proposers.prompt_lookup.proposer import PromptLookup
from engines.scripted.clock import ManualClock
from engines.scripted.law import HashLaw, MixedLaw, continuation
from engines.scripted.model import ScriptedSettings, scripted_proposer, scripted_target
from engines.scripted.proposer import Pace
from engines.scripted.rules import DraftRule, FollowLaw, FollowTarget
from engines.scripted.timetable import Timetable
from engines.scripted.vocabulary import Special
from service.generation.config import ResolvedGenerationConfig
from service.generation.sampling import (
    DrySettings,
    MirostatSettings,
    SamplerOrder,
    XtcSettings,
)
from service.speculation.contract import Proposer, Tokens
from service.speculation.cost import CostCurve
from service.speculation.lifecycle import RequestStatus
from service.speculation.options import SchedulerOptions
from service.speculation.round import TokenSource
from tests.neutral import GREEDY
from tests.scenarios.driver import EOS, Plan, Play, TableDriver

LETTERS = tuple(range(ord("a"), ord("a") + 12))
LAW = HashLaw(LETTERS, candidates=4, end_one_in=30)
RULES: dict[str, DraftRule] = {
    "right": FollowTarget(LAW),
    "wrong": FollowTarget(LAW, (False,)),
    "pattern": FollowTarget(LAW, (True, True, False, True)),
    "rarely": FollowTarget(LAW, (False, False, True)),
    "own": FollowLaw(MixedLaw(LAW, HashLaw(LETTERS, key=b"draft"))),
}
LOOKUP = "lookup"
# A steep curve, so that adaptive widths differ with the batch.
CURVE = CostCurve.from_points({(1, 1): 10.0, (1, 9): 14.0, (8, 1): 20.0, (8, 9): 60.0})
SAMPLED = replace(GREEDY, do_sample=True, temperature=1.0)
DRY = DrySettings(multiplier=1.5, allowed_length=1)
CONFIGS = (
    SAMPLED,
    replace(SAMPLED, temperature=0.6, top_k=3),
    replace(SAMPLED, temperature=1.5, top_p=0.8, min_p=0.1),
    replace(SAMPLED, repetition_penalty=1.3, frequency_penalty=0.5, presence_penalty=0.2),
    replace(SAMPLED, top_a=0.2, typical_p=0.9, sampler_order=SamplerOrder.TEMPERATURE_LAST),
    replace(SAMPLED, dry=DRY, xtc=XtcSettings(probability=0.5, threshold=0.1)),
    replace(SAMPLED, mirostat=MirostatSettings(version=1, tau=1.0, eta=0.5)),
    replace(SAMPLED, mirostat=MirostatSettings(version=2, tau=1.0, eta=0.5)),
    replace(SAMPLED, min_new_tokens=8, logit_bias={int(Special.EOS): 3.0}),
)
SHAPED = (
    replace(GREEDY, repetition_penalty=1.4, repeat_last_n=5),
    replace(GREEDY, frequency_penalty=0.7, presence_penalty=0.4, repeat_last_n=-1),
    replace(GREEDY, dry=DRY),
    replace(GREEDY, min_new_tokens=9, logit_bias={int(Special.EOS): 9.0}),
    replace(GREEDY, banned_token_ids=frozenset(LETTERS[::3])),
    replace(GREEDY, allowed_token_ids=frozenset(LETTERS[:5])),
)


@dataclass(frozen=True, slots=True)
class Request:
    """One drawn request; `rule` is None for plain decoding."""

    prompt: Tokens
    max_tokens: int
    rule: str | None
    width: int
    arrives_after: int
    config: ResolvedGenerationConfig = GREEDY
    seed: int = 0


@dataclass(frozen=True, slots=True)
class World:
    """One drawn engine and scheduler."""

    settings: ScriptedSettings
    options: SchedulerOptions
    widths: tuple[int, ...] = ()
    draft_seconds: float = 0.0


tokens = st.lists(st.sampled_from(LETTERS), min_size=1, max_size=20).map(tuple)
seconds = st.sampled_from([0.25, 1.0, 1.0, 3.0])


def requests(configs: st.SearchStrategy[ResolvedGenerationConfig]) -> st.SearchStrategy[Request]:
    return st.builds(
        Request,
        prompt=tokens,
        max_tokens=st.integers(1, 30),
        rule=st.sampled_from([None, LOOKUP, *RULES]),
        width=st.integers(1, 8),
        arrives_after=st.integers(0, 12),
        config=configs,
        seed=st.integers(0, 2**64 - 1),
    )


@st.composite
def worlds(draw: st.DrawFn) -> World:
    is_synchronous = draw(st.sampled_from([True, False, False]))
    engine = ScriptedSettings(
        law=LAW,
        max_slots=draw(st.integers(1, 8)),
        max_context=draw(st.sampled_from([22, 64])),
        max_pass_lanes=draw(st.integers(1, 8)),
        max_pass_rows=draw(st.sampled_from([9, 16, 72])),
        timetable=Timetable(draw(seconds), draw(st.dictionaries(st.integers(1, 20), seconds))),
        is_synchronous=is_synchronous,
    )
    lookahead = draw(st.sampled_from([True, True, False]))
    options = SchedulerOptions(
        max_in_flight_verifications=draw(st.integers(1, 3)),
        max_optimistic_branches=draw(st.integers(1, 2)),
        lookahead_blocks=int(lookahead),
        adaptive_lookahead=draw(st.booleans()),
        max_pass_lanes=draw(st.integers(1, 8)),
        prefill_chunk_tokens=draw(st.integers(1, 9)),
        merge_after_passes=draw(st.integers(1, 4)),
    )
    widths = draw(st.sampled_from([(), (3, 0, 8, 1)]))
    return World(engine, options, widths, draw(st.sampled_from([0.0, 0.4])))


Watch = Callable[[TableDriver], None]


def play(world: World, drawn: list[Request], watch: Watch, **changes: object) -> TableDriver:
    """Run requests through one table, each arriving after its number of steps."""
    target = scripted_target(world.settings, ManualClock())
    driver = TableDriver(target, world.options)
    pace = Pace(world.widths, world.draft_seconds, target.device)
    proposers: dict[str, Proposer] = {LOOKUP: PromptLookup(CURVE)}
    proposers |= {name: scripted_proposer(name, rule, pace) for name, rule in RULES.items()}
    plans = [
        (request.arrives_after, _plan(str(index), request, proposers, **changes))
        for index, request in enumerate(drawn)
    ]
    for step in range(13):
        for arrives_after, plan in plans:
            if arrives_after == step:
                driver.submit(plan)
        driver.step()
        watch(driver)
    driver.run(watch)
    return driver


def _plan(name: str, request: Request, proposers: dict[str, Proposer], **changes: object) -> Plan:
    plan = Plan(
        name,
        request.prompt,
        max_tokens=request.max_tokens,
        proposer=None if request.rule is None else proposers[request.rule],
        width=request.width,
        config=request.config,
        seed=request.seed,
    )
    return replace(plan, **changes)


def assert_cache_matches(driver: TableDriver) -> None:
    """A lane between rounds has cached all its tokens but the leading one, and no other."""
    for request_id, live in driver.live.items():
        lane = driver.table.lane(request_id)
        if lane.status is RequestStatus.READY_TO_DRAFT:
            boundary = driver.target.checkpoint(live.slot)
            assert driver.target.cache.read(live.slot, boundary) == (
                *live.plan.prompt,
                *live.tokens[:-1],
            )


def assert_counters_agree(ended: Play) -> None:
    """A request's counters follow from what it was given and what it published."""
    assert ended.ended is not None
    counted, sources = ended.ended.statistics, ended.sources
    assert counted.emitted_tokens == len(ended.tokens)
    assert counted.accepted_tokens == sum(counted.accept_lens)
    assert counted.accepted_tokens == sources.count(TokenSource.ACCEPTED)
    assert counted.judged_tokens - counted.accepted_tokens == sources.count(TokenSource.REPLACEMENT)
    assert counted.plain_steps == sources.count(TokenSource.PLAIN)
    assert counted.rounds == len(counted.accept_lens)
    assert counted.accepted_tokens <= counted.judged_tokens <= counted.draft_tokens
    assert counted.target_tokens == (
        len(ended.plan.prompt) + counted.plain_steps + counted.rounds + counted.draft_tokens
    )
    assert counted.optimistic_draft_tokens == (
        counted.consumed_optimistic_tokens
        + counted.reused_optimistic_tokens
        + counted.discarded_optimistic_tokens
    )


def assert_totals_agree(driver: TableDriver) -> None:
    """The scheduler's counters are the sums of its requests'."""
    counted = [ended.ended.statistics for ended in driver.plays.values() if ended.ended]
    totals = driver.table.statistics
    for field in (
        "rounds",
        "plain_steps",
        "draft_tokens",
        "judged_tokens",
        "accepted_tokens",
        "emitted_tokens",
    ):
        assert getattr(totals, field) == sum(getattr(one, field) for one in counted), field
    assert totals.completed_requests == len(driver.plays)
    assert totals.prefilled_tokens == sum(len(p.plan.prompt) for p in driver.plays.values())
    assert totals.active_lanes == 0


@settings(max_examples=200)
@given(worlds(), st.lists(requests(st.just(GREEDY)), min_size=1, max_size=8))
def test_greedy_output_under_any_schedule_is_the_targets_own(
    world: World, drawn: list[Request]
) -> None:
    """Drafters, widths, batches, chunks, lookahead, time and arrival leave the output alone."""
    driver = play(world, drawn, assert_cache_matches)

    for index, request in enumerate(drawn):
        ended = driver.plays[str(index)]
        length = min(request.max_tokens, world.settings.max_context - len(request.prompt))
        expected = continuation(LAW, request.prompt, length, EOS)
        assert ended.ended is not None
        assert (RequestStatus.COMPLETED, None) == (ended.ended.status, ended.ended.error)
        assert expected == ended.ended.tokens == ended.tokens
        assert_counters_agree(ended)
    assert_totals_agree(driver)
    statistics = driver.table.statistics
    event(f"rejections: {statistics.judged_tokens > statistics.accepted_tokens}")
    event(f"branches: {statistics.peak_optimistic_branches}")
    event(f"passes in flight: {statistics.peak_in_flight_verifications}")


def alone_in(world: World) -> World:
    """Return a world with the same window and nothing else of it: no neighbours, no lookahead."""
    engine = ScriptedSettings(law=LAW, max_context=world.settings.max_context)
    return World(engine, SchedulerOptions().with_lookahead(enabled=False))


@settings(max_examples=120)
@given(worlds(), st.lists(requests(st.sampled_from(CONFIGS)), min_size=1, max_size=8))
def test_sampled_output_of_a_seed_is_the_same_alone_and_in_any_batch(
    world: World, drawn: list[Request]
) -> None:
    """Seed, proposer and width fix the output; neighbours, lookahead and time do not."""
    fixed = partial(play, watch=assert_cache_matches, is_fixed=True)

    together = fixed(world, drawn)

    for index, request in enumerate(drawn):
        alone = fixed(alone_in(world), [replace(request, arrives_after=0)]).plays["0"]
        ended = together.plays[str(index)]
        assert ended.ended is not None
        assert (RequestStatus.COMPLETED, None) == (ended.ended.status, ended.ended.error)
        assert alone.tokens == ended.tokens
        assert_counters_agree(ended)
    assert_totals_agree(together)


@settings(max_examples=120)
@given(worlds(), st.lists(requests(st.sampled_from(SHAPED)), min_size=1, max_size=8))
def test_greedy_output_under_settings_is_that_of_plain_decoding(
    world: World, drawn: list[Request]
) -> None:
    """B26: what counts earlier tokens counts those of the block, whatever becomes of them."""
    driver = play(world, drawn, assert_cache_matches)

    for index, request in enumerate(drawn):
        bare = replace(request, rule=None, arrives_after=0)
        plain = play(alone_in(world), [bare], assert_cache_matches).plays["0"]
        ended = driver.plays[str(index)]
        assert ended.ended is not None
        assert (RequestStatus.COMPLETED, None) == (ended.ended.status, ended.ended.error)
        assert plain.tokens == ended.tokens
        assert_counters_agree(ended)
    assert_totals_agree(driver)
