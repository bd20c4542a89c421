"""Many requests through one request table over the real target, some lanes at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from service.generation.cancellation import CancellationToken
from service.generation.config import GenerationOverrides, resolve_generation_config
from service.generation.randomness import Randomness
from service.generation.sequence import GenerationSequence
from service.speculation.contract import Proposer, SamplingInput, Target, Tokens
from service.speculation.lane import LaneRequest, TerminalRequest
from service.speculation.observer import LifecycleObserver, ignore_lifecycle
from service.speculation.options import SchedulerOptions, SpeculativeConfig
from service.speculation.publication import CallbackPublisher, PublishedRound, TokensOnly
from service.speculation.table import RequestTable

MAX_TOKENS = 24
GREEDY = resolve_generation_config(None, GenerationOverrides(temperature=0.0))


@dataclass(frozen=True, slots=True)
class Job:
    """A request to decode: its prompt, who drafts for it, and who interferes."""

    prompt: Tokens
    proposer: Proposer | None = None
    width: int = 8
    fixed_width: bool = False
    deliver: Callable[[PublishedRound], None] = lambda _: None
    observer: LifecycleObserver = ignore_lifecycle
    cancellation: CancellationToken = field(default_factory=CancellationToken)


def decode(
    target: Target, jobs: Sequence[Job], lanes: int, ends: frozenset[int]
) -> list[TerminalRequest]:
    """Decode all jobs, at most `lanes` at once: the next one joins as soon as one has ended."""
    table = RequestTable(target, SchedulerOptions())
    waiting = deque(range(len(jobs)))
    running: dict[int, int] = {}
    ended: dict[int, TerminalRequest] = {}
    with ExitStack() as slots:
        free = [_open(target, slots) for _ in range(min(lanes, len(jobs)))]
        while len(ended) < len(jobs):
            while waiting and free:
                index = waiting.popleft()
                running[table.add(_request(target, free.pop(), jobs[index], ends))] = index
            table.step()
            for terminal in table.take_terminal():
                target.restore(terminal.slot, 0)
                free.append(terminal.slot)
                ended[running.pop(terminal.request_id)] = terminal
    return [ended[index] for index in range(len(jobs))]


def _open(target: Target, slots: ExitStack) -> int:
    slot = target.open()
    slots.callback(target.close, slot)
    return slot


def _request(target: Target, slot: int, job: Job, ends: frozenset[int]) -> LaneRequest:
    return LaneRequest(
        slot=slot,
        prompt=job.prompt,
        config=SpeculativeConfig(
            max_tokens=MAX_TOKENS,
            max_draft_tokens=job.width,
            eos_token_ids=ends,
            fixed_width=job.fixed_width,
        ),
        sampler=target.sampler(SamplingInput(GREEDY, job.prompt, target.limits.vocabulary_size)),
        sequence=GenerationSequence(MAX_TOKENS, ends),
        text=TokensOnly(),
        publisher=CallbackPublisher(job.deliver),
        cancellation=job.cancellation,
        randomness=Randomness(None, None),
        proposer=job.proposer,
        observer=job.observer,
    )
