"""Passes: what is submitted for each lane, and the rows that it leaves behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engines.scripted.cache import SlotCache
from engines.scripted.distribution import SparseDistribution, distribution_of, softmax
from engines.scripted.fault import FaultPlan, Operation
from engines.scripted.floor import with_floor
from engines.scripted.law import Law, Logits
from engines.scripted.sampling import ScriptedSampler
from engines.scripted.vocabulary import VOCABULARY_SIZE
from service.errors import EngineError
from service.speculation.contract import (
    History,
    PrefillInput,
    Sampler,
    TokenLogprob,
    Tokens,
    VerificationInput,
)


@dataclass(frozen=True, slots=True)
class PassLane:
    """One lane of a pass; its last `rows` inputs get a row each."""

    slot: int
    generation: int
    checkpoint: int
    tokens: Tokens
    rows: int
    history: History
    is_prompt: bool = False

    @property
    def end(self) -> int:
        """Return the boundary behind all inputs."""
        return self.checkpoint + len(self.tokens)

    def row_history(self, row: int) -> History:
        """Return what a row's processing may look at: the inputs after the first are proposals."""
        proposals = () if self.is_prompt else self.tokens[1 : row + 1]
        return History(self.history.prompt, (*self.history.generated, *proposals))


def prefill_lane(lane: PrefillInput, generation: int) -> PassLane:
    """Return a lane of prompt tokens, with a row behind the prompt's last, or behind each."""
    rows = len(lane.tokens) if lane.every_row else int(lane.is_last)
    return PassLane(
        lane.slot,
        generation,
        lane.checkpoint,
        lane.tokens,
        rows,
        lane.history,
        is_prompt=True,
    )


def verification_lane(lane: VerificationInput, generation: int) -> PassLane:
    """Return a lane with a row behind each of its inputs."""
    rows = len(lane.tokens)
    return PassLane(lane.slot, generation, lane.checkpoint, lane.tokens, rows, lane.history)


def compute_rows(law: Law, cache: SlotCache, lane: PassLane) -> tuple[Logits, ...]:
    """Return the lane's rows, from what the cache holds: not from what the lane believes."""
    first = lane.end - lane.rows
    return tuple(law.logits(cache.read(lane.slot, first + row + 1)) for row in range(lane.rows))


class ScriptedRows:
    """One lane's rows, processed on request."""

    def __init__(self, owner: ScriptedPass, lane: PassLane, rows: tuple[Logits, ...]) -> None:
        self._owner = owner
        self._lane = lane
        self._rows = rows

    def distribution(self, row: int, sampler: Sampler) -> SparseDistribution:
        """Return one processed row.

        Raises:
            EngineError: the pass was released, or it has no such row.
        """
        own, logits = self._own(sampler), self._logits(row)
        return own.process(logits, self._lane.row_history(row))

    def logprob(self, row: int, sampler: Sampler, token: int, alternatives: int) -> TokenLogprob:
        """Return a token's log-probability in the processed row."""
        own, logits = self._own(sampler), self._logits(row)
        return own.logprob(logits, self._lane.row_history(row), token, alternatives)

    def raw_logprob(self, row: int, token: int, alternatives: int) -> TokenLogprob:
        """Return a token's log-probability in the law's own distribution.

        A prompt holds whatever its author wrote, so tokens that the law does not list count too.
        """
        weights = softmax(with_floor(self._logits(row), VOCABULARY_SIZE))
        return distribution_of(weights).logprob(token, alternatives)

    def _logits(self, row: int) -> Logits:
        self._owner.require_readable()
        self._owner.strike(Operation.ROWS, self._lane.slot)
        if not 0 <= row < len(self._rows):
            raise EngineError(f"row {row} is not among the {len(self._rows)} of its lane")
        return self._rows[row]

    def _own(self, sampler: Sampler) -> ScriptedSampler:
        if not isinstance(sampler, ScriptedSampler):
            raise EngineError(f"a scripted row cannot be processed by {type(sampler).__name__}")
        return sampler


class ScriptedPass:
    """What one submission computes; readable between a successful wait and the release."""

    def __init__(self, number: int, lanes: Sequence[PassLane], faults: FaultPlan) -> None:
        self.number = number
        self.lanes = tuple(lanes)
        self.seconds = 0.0
        self._faults = faults
        self._rows: tuple[tuple[Logits, ...], ...] = ()
        self._was_waited_for = False
        self._is_released = False

    def run(self, law: Law, cache: SlotCache) -> None:
        """Write every lane's inputs, then compute the rows: the device's part."""
        for lane in self.lanes:
            cache.write(lane.slot, lane.checkpoint, lane.tokens)
        self._rows = tuple(compute_rows(law, cache, lane) for lane in self.lanes)

    def make_readable(self) -> None:
        """Note that the completion was waited for, and that the work succeeded."""
        self._was_waited_for = True

    def require_readable(self) -> None:
        """Refuse to show anything before the wait or after the release."""
        if not self._was_waited_for:
            raise EngineError(f"pass {self.number} was read before its completion was waited for")
        if self._is_released:
            raise EngineError(f"pass {self.number} was read after its release")

    def rows(self, lane: int) -> ScriptedRows:
        """Return one lane's rows."""
        self.require_readable()
        if not 0 <= lane < len(self.lanes):
            raise EngineError(f"pass {self.number} has no lane {lane}")
        return ScriptedRows(self, self.lanes[lane], self._rows[lane])

    def strike(self, where: Operation, slot: int) -> None:
        """Let a fault strike a lane."""
        self._faults.strike(where, slot)

    def release(self) -> None:
        """Make the rows invalid."""
        self._is_released = True
