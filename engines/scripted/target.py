"""The scripted target: slots, passes and exact commits over cells that hold tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

from engines.scripted.cache import SlotCache
from engines.scripted.device import Device, Effects, Work
from engines.scripted.fault import FaultPlan, Operation
from engines.scripted.law import Law
from engines.scripted.passes import PassLane, ScriptedPass, prefill_lane, verification_lane
from engines.scripted.sampling import ScriptedSampler
from engines.scripted.timetable import Timetable
from service.errors import EngineError, OutriderError
from service.speculation.contract import (
    CommitInput,
    CommitResult,
    ComponentTimings,
    PassOutput,
    PrefillInput,
    SamplingInput,
    Submission,
    TargetLimits,
    Tokens,
    VerificationInput,
)


@dataclass(frozen=True, slots=True)
class CacheSeed:
    """What proposers get after a commit: a fingerprint of the cached tokens."""

    fingerprint: bytes


def seed_of(tokens: Tokens) -> CacheSeed:
    """Return the seed that belongs to a cache with exactly these tokens."""
    packed = b"".join(token.to_bytes(4, "little") for token in tokens)
    return CacheSeed(blake2b(packed, digest_size=16).digest())


class ScriptedTarget:
    """A target whose rows follow a law over its cache's contents.

    On submission a slot's boundary moves behind the inputs; the cells are
    written when the work ends. What a caller forgets to wait for, to commit or
    to restore therefore changes what comes next.
    """

    def __init__(
        self,
        law: Law,
        limits: TargetLimits,
        device: Device,
        timetable: Timetable | None = None,
        faults: FaultPlan | None = None,
    ) -> None:
        self.law = law
        self.device = device
        self.faults = faults or FaultPlan()
        self.cache = SlotCache(limits.max_slots, limits.max_context)
        self.passes = 0
        self._limits = limits
        self._timetable = timetable or Timetable()

    @property
    def limits(self) -> TargetLimits:
        """Return the limits that the target was made with."""
        return self._limits

    def sampler(self, request: SamplingInput) -> ScriptedSampler:
        """Return the processing of one request, before its first token."""
        return ScriptedSampler(request)

    def open(self) -> int:
        """Take the lowest free slot."""
        self.device.catch_up()
        self.faults.strike(Operation.OPEN)
        return self.cache.open()

    def close(self, slot: int) -> None:
        """Free a slot once no unfinished work can write to it."""
        self.device.catch_up()
        self.faults.strike(Operation.CLOSE, slot)
        self.cache.close(slot)

    def abandon(self, slot: int) -> None:
        """Retire a slot."""
        self.cache.abandon(slot)

    def checkpoint(self, slot: int) -> int:
        """Return a slot's boundary."""
        self.device.catch_up()
        self.faults.strike(Operation.CHECKPOINT, slot)
        return self.cache.boundary(slot)

    def restore(self, slot: int, checkpoint: int) -> None:
        """Move a slot's boundary back; the cells stay as they are."""
        self.device.catch_up()
        self.faults.strike(Operation.RESTORE, slot)
        if checkpoint > self.cache.boundary(slot):
            raise EngineError(f"cache slot {slot} has not passed boundary {checkpoint}")
        self.cache.move_boundary(slot, checkpoint)

    def prefill(self, lanes: Sequence[PrefillInput]) -> Submission:
        """Submit prompt chunks."""
        self.device.catch_up()
        self.faults.strike(Operation.PREFILL, *(lane.slot for lane in lanes))
        generation = self.cache.generation
        return self._submit([prefill_lane(lane, generation(lane.slot)) for lane in lanes])

    def submit(self, lanes: Sequence[VerificationInput]) -> Submission:
        """Submit leading inputs and their proposals."""
        self.device.catch_up()
        self.faults.strike(Operation.SUBMIT, *(lane.slot for lane in lanes))
        generation = self.cache.generation
        return self._submit([verification_lane(lane, generation(lane.slot)) for lane in lanes])

    def commit(
        self, output: PassOutput, lanes: Sequence[CommitInput]
    ) -> Sequence[CommitResult | OutriderError]:
        """Move each lane's boundary to its checkpoint and the inputs it keeps."""
        self.device.catch_up()
        self.faults.strike(Operation.COMMIT)
        return [self._commit_lane(output, lane) for lane in lanes]

    def take_timings(self, output: PassOutput) -> ComponentTimings | None:
        """Return the seconds that the timetable gave a pass, where the limits promise them."""
        if not self._limits.supports_component_timings or not isinstance(output, ScriptedPass):
            return None
        return ComponentTimings(target_verification=output.seconds)

    def _submit(self, lanes: Sequence[PassLane]) -> Submission:
        self._require_legal(lanes)
        self.passes += 1
        output = ScriptedPass(self.passes, lanes, self.faults)
        output.seconds = self._timetable.seconds(self.passes)
        for lane in lanes:
            self.cache.begin_write(lane.slot)
            self.cache.move_boundary(lane.slot, lane.end)
        return Submission(output, self._start(output))

    def _start(self, output: ScriptedPass) -> Work:
        slots = [lane.slot for lane in output.lanes]

        def settle() -> None:
            for slot in slots:
                self.cache.end_write(slot)

        effects = Effects(
            run=lambda: output.run(self.law, self.cache),
            settle=settle,
            on_success=output.make_readable,
            error=self.faults.first_error(Operation.COMPLETION, *slots),
        )
        return self.device.submit(output.seconds, effects)

    def _require_legal(self, lanes: Sequence[PassLane]) -> None:
        """Refuse a pass that the limits or the caches do not admit, before it changes anything."""
        limits = self._limits
        rows = len(lanes) * max((len(lane.tokens) for lane in lanes), default=0)
        if not 0 < len(lanes) <= limits.max_pass_lanes:
            raise EngineError(f"a pass has {len(lanes)} lanes of 1 to {limits.max_pass_lanes}")
        if not 0 < rows <= limits.max_pass_rows:
            raise EngineError(f"a pass has {rows} padded rows of 1 to {limits.max_pass_rows}")
        if len({lane.slot for lane in lanes}) < len(lanes):
            raise EngineError("a pass has two lanes of one slot")
        for lane in lanes:
            self._require_legal_lane(lane)

    def _require_legal_lane(self, lane: PassLane) -> None:
        boundary = self.cache.boundary(lane.slot)
        where = f"cache slot {lane.slot}"
        if not lane.tokens:
            raise EngineError(f"{where} has no input in a pass")
        if lane.checkpoint != boundary:
            raise EngineError(f"{where} stands at {boundary}, not at {lane.checkpoint}")
        if lane.end > self._limits.max_context:
            raise EngineError(f"{where} would hold {lane.end} of {self._limits.max_context}")

    def _commit_lane(self, output: PassOutput, lane: CommitInput) -> CommitResult | OutriderError:
        try:
            self.faults.strike_lane(Operation.COMMIT, lane.slot)
            self._require_committable(output, lane)
        except OutriderError as error:
            return error
        self.cache.move_boundary(lane.slot, lane.checkpoint + lane.inputs)
        return CommitResult(seed_of(self.cache.read(lane.slot, lane.checkpoint + lane.inputs)))

    def _require_committable(self, output: PassOutput, lane: CommitInput) -> None:
        if not isinstance(output, ScriptedPass):
            raise EngineError("a commit names a pass of another engine")
        output.require_readable()
        if not 0 <= lane.lane < len(output.lanes):
            raise EngineError(f"pass {output.number} has no lane {lane.lane}")
        submitted = output.lanes[lane.lane]
        known = (submitted.slot, submitted.generation, submitted.checkpoint)
        if known != (lane.slot, self.cache.generation(lane.slot), lane.checkpoint):
            raise EngineError(f"lane {lane.lane} of pass {output.number} is another lane now")
        if not 0 <= lane.inputs <= len(submitted.tokens):
            raise EngineError(f"{lane.inputs} of {len(submitted.tokens)} inputs cannot be kept")
