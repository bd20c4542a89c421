"""The engines that the contract suite runs on: one row each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from engines.onnx.target import OnnxTarget
from engines.scripted.clock import ManualClock
from engines.scripted.fault import Fault, FaultPlan, Operation
from engines.scripted.law import HashLaw
from engines.scripted.model import ScriptedSettings, scripted_target
from engines.scripted.target import ScriptedTarget
from engines.scripted.timetable import Timetable
from service.errors import EngineError
from service.speculation.contract import Target
from tests.contract.tiny_model import tiny_decoder

SLOTS = 4
CONTEXT = 96
PASS_LANES = 4
PASS_ROWS = 64


@dataclass(frozen=True, slots=True)
class EngineCase:
    """An engine under test: how to make one, and what is known about it.

    It has `SLOTS` slots of `CONTEXT` tokens and passes of `PASS_LANES` lanes
    and `PASS_ROWS` padded rows. Rows of one history differ by at most
    `tolerance`, however they were computed; zero means bit-equal. Without work
    in flight a submission has ended when it returns, and there is nothing to
    wait for.
    """

    name: str
    build: Callable[[], Target]
    tolerance: float = 0.0
    has_work_in_flight: bool = True


@dataclass(frozen=True, slots=True)
class SlowEngineCase:
    """An engine whose passes can be made to outlive a wait.

    `build` makes one whose passes take so many seconds each, the last number
    for all that follow, and `failing` one whose pass of a number ends in an
    error. `pass_time` lets seconds go by.
    """

    name: str
    build: Callable[..., Target]
    failing: Callable[[int], Target]
    pass_time: Callable[[Target, float], None]


# The tokens of the suite are among its candidates, so that what was said can matter.
LAW = HashLaw(alphabet=tuple(range(1, 13)), candidates=15)


def _settings(*seconds: float, is_synchronous: bool = False) -> ScriptedSettings:
    return ScriptedSettings(
        law=LAW,
        max_slots=SLOTS,
        max_context=CONTEXT,
        max_pass_lanes=PASS_LANES,
        max_pass_rows=PASS_ROWS,
        timetable=Timetable(seconds[-1], dict(enumerate(seconds, start=1))),
        is_synchronous=is_synchronous,
    )


def scripted_sync() -> Target:
    """Make a scripted target that has done its work when it returns."""
    return scripted_target(_settings(0.0, is_synchronous=True))


def scripted_async() -> Target:
    """Make a scripted target whose passes take a second of a clock that waiting moves."""
    return scripted_target(_settings(1.0), ManualClock())


def onnx_tiny() -> Target:
    """Make an ONNX Runtime target of a tiny random model."""
    decoder = tiny_decoder(SLOTS, CONTEXT)
    return OnnxTarget(decoder, max_pass_lanes=PASS_LANES, max_pass_rows=PASS_ROWS)


ENGINES = (
    EngineCase("scripted-sync", scripted_sync),
    EngineCase("scripted-async", scripted_async),
    EngineCase("onnx-tiny", onnx_tiny, has_work_in_flight=False),
)


def _slow(*seconds: float) -> Target:
    return scripted_target(_settings(*seconds), ManualClock())


def _failing(number: int) -> Target:
    fault = Fault(Operation.COMPLETION, EngineError("scripted"), nth=number)
    return scripted_target(_settings(1.0), ManualClock(), FaultPlan([fault]))


def _pass_time(target: Target, seconds: float) -> None:
    assert isinstance(target, ScriptedTarget)
    clock = target.device.clock
    clock.wait_until(clock.now() + seconds)


SLOW_ENGINES = (SlowEngineCase("scripted-async", _slow, _failing, _pass_time),)
