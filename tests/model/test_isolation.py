"""What strikes one of eight lanes on the real engine leaves the others' output unchanged."""

from collections.abc import Callable

import pytest

from engines.onnx.target import OnnxTarget
from service.errors import EngineError, OutriderError, PublicationError
from service.generation.cancellation import CancellationToken
from service.speculation.lifecycle import RequestStatus
from service.speculation.observer import LifecycleStage
from tests.model.drafts import KnowingProposer
from tests.model.lanes import Job, decode

pytestmark = [pytest.mark.model, pytest.mark.timeout(1200)]

LANES = 8
STRUCK = 3


class RaisingAtVisit:
    """Raises an error on its nth call."""

    def __init__(self, error: OutriderError, nth: int) -> None:
        self._error = error
        self._left = nth

    def __call__(self, _: object) -> None:
        self._left -= 1
        if self._left == 0:
            raise self._error


class FailingAt:
    """Raises at the nth visit of one lifecycle stage."""

    def __init__(self, stage: LifecycleStage, nth: int) -> None:
        self._stage = stage
        self._raise = RaisingAtVisit(EngineError("struck"), nth)

    def __call__(self, stage: LifecycleStage) -> None:
        if stage is self._stage:
            self._raise(stage)


class InterruptedTarget(OnnxTarget):
    """A target during whose nth verification of one prompt's lane something happens."""

    def __init__(self, target: OnnxTarget, prompt, nth: int, interrupt: Callable[[], None]) -> None:
        super().__init__(target.decoder)
        self._prompt = prompt
        self._left = nth
        self._interrupt = interrupt

    def submit(self, lanes):
        submission = super().submit(lanes)
        self._left -= any(lane.history.prompt == self._prompt for lane in lanes)
        if self._left == 0:
            self._interrupt()
        return submission


@pytest.fixture
def eight(prompts, alone):
    """Eight prompts with outputs of full length, and the outputs."""
    whole = max(map(len, alone))
    chosen = [pair for pair in zip(prompts, alone, strict=True) if len(pair[1]) == whole]
    return dict(chosen[:LANES])


def expect_others_unchanged(ended, eight) -> None:
    for index, (terminal, answer) in enumerate(zip(ended, eight.values(), strict=True)):
        if index != STRUCK:
            assert (None, answer) == (terminal.error, terminal.tokens)


@pytest.mark.parametrize(
    "stage",
    [
        LifecycleStage.EXECUTION,
        LifecycleStage.COMPLETION,
        LifecycleStage.CACHE_PERSISTENCE,
        LifecycleStage.PUBLICATION,
    ],
)
def test_lane_that_fails_at_a_boundary_fails_alone(model, eight, stage) -> None:
    proposer = KnowingProposer(eight)
    jobs = [Job(prompt, proposer) for prompt in eight]
    jobs[STRUCK] = Job(list(eight)[STRUCK], proposer, observer=FailingAt(stage, 3))

    ended = decode(model.target, jobs, LANES, model.eos_token_ids)

    assert RequestStatus.FAILED is ended[STRUCK].status
    expect_others_unchanged(ended, eight)


def test_lane_that_cannot_publish_fails_alone(model, eight) -> None:
    """Its cache was committed already; it is restored beside seven that go on."""
    proposer = KnowingProposer(eight)
    refuse = RaisingAtVisit(PublicationError("struck"), 3)
    jobs = [Job(prompt, proposer) for prompt in eight]
    jobs[STRUCK] = Job(list(eight)[STRUCK], proposer, deliver=refuse)

    ended = decode(model.target, jobs, LANES, model.eos_token_ids)

    assert RequestStatus.FAILED is ended[STRUCK].status
    expect_others_unchanged(ended, eight)


def test_lane_cancelled_in_the_middle_of_a_pass_ends_alone(model, eight) -> None:
    """Its reader is gone while the pass runs: it ends with that pass, and says nothing of it."""
    proposer, cancellation = KnowingProposer(eight), CancellationToken()
    struck, answer = list(eight.items())[STRUCK]
    target = InterruptedTarget(model.target, struck, 3, cancellation.cancel)
    delivered: list[int] = []
    jobs = [Job(prompt, proposer) for prompt in eight]
    jobs[STRUCK] = Job(
        struck,
        proposer,
        cancellation=cancellation,
        deliver=lambda published: delivered.extend(token.token_id for token in published.tokens),
    )

    ended = decode(target, jobs, LANES, model.eos_token_ids)

    assert RequestStatus.CANCELLED is ended[STRUCK].status
    assert tuple(delivered) == ended[STRUCK].tokens
    assert tuple(delivered) == answer[: len(delivered)]
    assert 2 == ended[STRUCK].statistics.rounds
    expect_others_unchanged(ended, eight)
