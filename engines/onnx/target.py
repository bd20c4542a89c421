"""The decoder as the core's target: passes, checkpoints, exact commits.

A pass is computed within its submission: there is one queue, and it is the
caller's thread. `max_rows` bounds how long a submission takes. A slot is the
decoder's slot and a checkpoint its length, so restoring and committing are
truncations.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from engines.onnx.completion import Done
from engines.onnx.decoder import Decoder
from engines.onnx.logits import LaneLogits
from engines.onnx.pass_output import LogitsPool, OnnxPass
from engines.onnx.passes import LaneInput
from engines.sampling.row_sampler import RowSampler
from engines.sampling.rows import LaneSpan, prefetch, rows_of
from service.errors import EngineError, OutriderError
from service.speculation.completion import CompletionCancellation
from service.speculation.contract import (
    CommitInput,
    CommitResult,
    ComponentTimings,
    PassOutput,
    PrefillInput,
    SamplingInput,
    Submission,
    TargetLimits,
    TargetRows,
    VerificationInput,
)


class OnnxTarget:
    """The ONNX Runtime engine behind the core's contract."""

    def __init__(
        self,
        decoder: Decoder,
        *,
        max_pass_lanes: int | None = None,
        max_pass_rows: int | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.decoder = decoder
        self._clock = clock
        rows = max_pass_rows or decoder.max_rows
        self._pool = LogitsPool(rows, decoder.vocabulary_size)
        self._limits = TargetLimits(
            vocabulary_size=decoder.vocabulary_size,
            max_context=decoder.max_context,
            max_slots=decoder.max_slots,
            max_pass_lanes=max_pass_lanes or decoder.max_slots,
            max_pass_rows=rows,
            cancellations=frozenset({CompletionCancellation.QUARANTINE_UNTIL_COMPLETE}),
            supports_component_timings=True,
        )

    @property
    def limits(self) -> TargetLimits:
        return self._limits

    def sampler(self, request: SamplingInput) -> RowSampler:
        return RowSampler.from_input(request)

    def open(self) -> int:
        return self.decoder.open()

    def close(self, slot: int) -> None:
        self.decoder.close(slot)

    def abandon(self, slot: int) -> None:
        self.decoder.retire(slot)

    def checkpoint(self, slot: int) -> int:
        return self.decoder.length(slot)

    def restore(self, slot: int, checkpoint: int) -> None:
        self.decoder.truncate(slot, checkpoint)

    def prefill(self, lanes: Sequence[PrefillInput]) -> Submission:
        """Compute prompt chunks; only a lane's last chunk goes through the head."""
        inputs = [
            LaneInput(lane.slot, lane.checkpoint, lane.tokens, _wanted(lane)) for lane in lanes
        ]

        def span(lane: int, first: int) -> LaneSpan:
            given = lanes[lane]
            return LaneSpan(first, given.sampler, given.history, prompt_rows=_wanted(given) - 1)

        for lane in lanes:
            if lane.is_last:
                prefetch(lane.sampler, lane.history, ())
        return self._submit(inputs, span)

    def submit(self, lanes: Sequence[VerificationInput]) -> Submission:
        """Compute leading inputs and proposals, every row through the head.

        What a constraint forbids at each row is computed meanwhile, where that pays.
        """
        inputs = [
            LaneInput(lane.slot, lane.checkpoint, lane.tokens, len(lane.tokens)) for lane in lanes
        ]

        def span(lane: int, first: int) -> LaneSpan:
            given = lanes[lane]
            return LaneSpan(first, given.sampler, given.history, given.tokens[1:])

        for lane in lanes:
            prefetch(lane.sampler, lane.history, lane.tokens[1:])
        return self._submit(inputs, span)

    def commit(
        self, output: PassOutput, lanes: Sequence[CommitInput]
    ) -> Sequence[CommitResult | OutriderError]:
        """Truncate each lane to its checkpoint and the inputs that it keeps."""
        return [self._commit(output, lane) for lane in lanes]

    def take_timings(self, output: PassOutput) -> ComponentTimings | None:
        """Return the seconds that the decoder took."""
        if not isinstance(output, OnnxPass):
            return None
        return ComponentTimings(target_verification=output.seconds)

    def _submit(
        self, inputs: Sequence[LaneInput], span: Callable[[int, int], LaneSpan]
    ) -> Submission:
        self._require_legal(inputs)
        buffer = self._pool.take()
        started = self._clock()
        try:
            logits = self.decoder.forward(inputs, buffer)
        except BaseException:
            self._pool.give_back(buffer)
            raise
        seconds = self._clock() - started
        output = OnnxPass(
            inputs,
            _rows(inputs, logits, span),
            seconds,
            lambda: self._pool.give_back(buffer),
        )
        return Submission(output, Done())

    def _require_legal(self, inputs: Sequence[LaneInput]) -> None:
        """Refuse a pass that the limits or a lane's boundary do not admit."""
        limits = self._limits
        rows = len(inputs) * max((len(lane.tokens) for lane in inputs), default=0)
        if not 0 < len(inputs) <= limits.max_pass_lanes:
            raise EngineError(f"a pass has {len(inputs)} lanes of 1 to {limits.max_pass_lanes}")
        if not 0 < rows <= limits.max_pass_rows:
            raise EngineError(f"a pass has {rows} padded rows of 1 to {limits.max_pass_rows}")
        for lane in inputs:
            boundary = self.decoder.length(lane.slot)
            if lane.start != boundary:
                raise EngineError(f"slot {lane.slot} stands at {boundary}, not at {lane.start}")

    def _commit(self, output: PassOutput, lane: CommitInput) -> CommitResult | OutriderError:
        try:
            _require_committable(output, lane)
            self.decoder.truncate(lane.slot, lane.checkpoint + lane.inputs)
        except OutriderError as error:
            return error
        return CommitResult()


def _wanted(lane: PrefillInput) -> int:
    return len(lane.tokens) if lane.every_row else int(lane.is_last)


def _rows(
    inputs: Sequence[LaneInput], logits: LaneLogits, span: Callable[[int, int], LaneSpan]
) -> list[TargetRows | None]:
    """Process the rows of all lanes that wanted some, at once."""
    wanted = [index for index, lane in enumerate(inputs) if lane.wanted]
    spans = [span(index, logits.first[index]) for index in wanted]
    by_lane = dict(zip(wanted, rows_of(spans, logits.rows), strict=True))
    return [by_lane.get(index) for index in range(len(inputs))]


def _require_committable(output: PassOutput, lane: CommitInput) -> None:
    if not isinstance(output, OnnxPass):
        raise EngineError("a commit names a pass of another engine")
    if not 0 <= lane.lane < len(output.lanes):
        raise EngineError(f"the pass has no lane {lane.lane}")
    submitted = output.lanes[lane.lane]
    if (submitted.slot, submitted.start) != (lane.slot, lane.checkpoint):
        raise EngineError(f"lane {lane.lane} of the pass is not slot {lane.slot}")
    if not 0 <= lane.inputs <= len(submitted.tokens):
        raise EngineError(f"{lane.inputs} of {len(submitted.tokens)} inputs cannot be kept")
