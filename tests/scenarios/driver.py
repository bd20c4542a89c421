"""Drive a request table over a scripted target: admit, step, let time pass, collect."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from engines.scripted.clock import ManualClock
from engines.scripted.target import ScriptedTarget
from engines.scripted.vocabulary import Special
from service.errors import NoFreeSlot
from service.generation.cancellation import CancellationToken
from service.generation.config import ResolvedGenerationConfig
from service.generation.randomness import randomness_from_seed
from service.generation.sequence import GenerationSequence
from service.speculation.contract import Constraint, Proposer, SamplingInput, Tokens
from service.speculation.lane import LaneRequest, TerminalRequest
from service.speculation.observer import LifecycleStage
from service.speculation.options import SchedulerOptions, SpeculativeConfig
from service.speculation.publication import CallbackPublisher, PublishedRound, TokensOnly
from service.speculation.round import TokenSource
from service.speculation.table import RequestTable, Turn
from tests.neutral import GREEDY

EOS = frozenset({int(Special.EOS)})
MOST_STEPS = 20_000


@dataclass(frozen=True, slots=True)
class CancelWhen:
    """When a request is cancelled: after so many tokens, or before the nth of a stage."""

    tokens: int | None = None
    stage: LifecycleStage | None = None
    nth: int = 1


NEVER = CancelWhen()


@dataclass(frozen=True, slots=True)
class Plan:
    """One request to admit."""

    name: str
    prompt: Tokens
    max_tokens: int = 16
    proposer: Proposer | None = None
    width: int = 4
    is_fixed: bool = False
    lookahead: bool = True
    config: ResolvedGenerationConfig = GREEDY
    constraint: Constraint | None = None
    seed: int = 0
    cancel: CancelWhen = NEVER


@dataclass(slots=True)
class Play:
    """A request that was admitted, and what it has shown."""

    plan: Plan
    slot: int
    cancellation: CancellationToken = field(default_factory=CancellationToken)
    rounds: list[PublishedRound] = field(default_factory=list)
    stages: list[LifecycleStage] = field(default_factory=list)
    ended: TerminalRequest | None = None

    @property
    def tokens(self) -> Tokens:
        """Return every token that was delivered."""
        return tuple(commit.token_id for round_ in self.rounds for commit in round_.tokens)

    @property
    def sources(self) -> tuple[TokenSource, ...]:
        """Return where each delivered token came from."""
        return tuple(source for round_ in self.rounds for source in round_.sources)

    def deliver(self, round_: PublishedRound) -> None:
        """Take one round, and cancel if enough has come."""
        self.rounds.append(round_)
        enough = self.plan.cancel.tokens
        if enough is not None and len(self.tokens) >= enough:
            self.cancellation.cancel()

    def observe(self, stage: LifecycleStage) -> None:
        """Note one boundary, and cancel if it is the one."""
        self.stages.append(stage)
        cancel = self.plan.cancel
        if stage is cancel.stage and self.stages.count(stage) == cancel.nth:
            self.cancellation.cancel()


class TableDriver:
    """A table on a scripted target's clock; requests wait in line for a free slot."""

    def __init__(
        self,
        target: ScriptedTarget,
        options: SchedulerOptions,
        on_open: Callable[[Play], None] = lambda _: None,
    ) -> None:
        clock = target.device.clock
        assert isinstance(clock, ManualClock)
        self.target = target
        self.clock = clock
        self.table = RequestTable(target, options, clock.now)
        self.plays: dict[str, Play] = {}
        self._on_open = on_open
        self._ids: dict[int, Play] = {}
        self._waiting: deque[Plan] = deque()

    @property
    def live(self) -> dict[int, Play]:
        """Return the requests in the table by their ids there."""
        return self._ids

    @property
    def is_idle(self) -> bool:
        """Whether nothing is in the table or waits in line."""
        return not self._ids and not self._waiting

    def submit(self, plan: Plan) -> None:
        """Put a request in line."""
        self._waiting.append(plan)
        self._admit()

    def step(self) -> None:
        """Apply one action or let time pass to the next thing that can happen."""
        turn = self.table.step()
        if turn is Turn.WAITING:
            self.table.on_progress(lambda: None)
            times = (self.clock.next_call(), self.table.next_deadline())
            self.clock.wait_until(min(time for time in times if time is not None))
        elif turn is Turn.IDLE and self._waiting:
            self.clock.advance(1.0)
        self._collect()
        self._admit()

    def run(self, watch: Callable[[TableDriver], None] = lambda _: None) -> dict[str, Play]:
        """Step until every request has ended; show the driver to `watch` after each step."""
        for _ in range(MOST_STEPS):
            if self.is_idle:
                return self.plays
            self.step()
            watch(self)
        raise AssertionError("the table does not come to an end")

    def _admit(self) -> None:
        while self._waiting:
            try:
                slot = self.target.open()
            except NoFreeSlot:
                return
            play = Play(self._waiting.popleft(), slot)
            self.plays[play.plan.name] = play
            self._on_open(play)
            self._ids[self.table.add(self._request(play))] = play

    def _request(self, play: Play) -> LaneRequest:
        plan, temperature = play.plan, play.plan.config.temperature
        randomness = randomness_from_seed(plan.seed, temperature)
        sampling = SamplingInput(
            config=plan.config,
            prompt=plan.prompt,
            vocabulary_size=self.target.limits.vocabulary_size,
            end_token_ids=EOS,
            coins=randomness.coins,
            constraint=plan.constraint,
        )
        return LaneRequest(
            slot=play.slot,
            prompt=plan.prompt,
            config=SpeculativeConfig(
                plan.max_tokens, plan.width, temperature, EOS, fixed_width=plan.is_fixed
            ),
            sampler=self.target.sampler(sampling),
            sequence=GenerationSequence(
                plan.max_tokens, EOS, self.target.limits.max_context - len(plan.prompt)
            ),
            text=TokensOnly(),
            publisher=CallbackPublisher(play.deliver),
            cancellation=play.cancellation,
            randomness=randomness,
            proposer=plan.proposer,
            observer=play.observe,
            lookahead=plan.lookahead,
            component_timings=True,
        )

    def _collect(self) -> None:
        for ended in self.table.take_terminal():
            self._ids.pop(ended.request_id).ended = ended
            leave = self.target.close if ended.slot_is_reusable else self.target.abandon
            leave(ended.slot)
            self.target.faults.disarm(ended.slot)
