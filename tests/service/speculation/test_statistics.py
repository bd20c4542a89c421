from dataclasses import replace

import pytest

from service.speculation.capability import ExecutionTopology
from service.speculation.contract import ComponentTimings
from service.speculation.options import SchedulerOptions
from service.speculation.statistics import SequenceStatistics


def test_statistics_keep_exact_counters_and_durations():
    statistics = SequenceStatistics(
        execution_topology=ExecutionTopology.CROSS_DEVICE_SPLIT,
        target_tokens=31,
        draft_tokens=8,
        judged_tokens=6,
        accepted_tokens=5,
        rounds=2,
        accept_lens=(2, 3),
        emitted_tokens=8,
        optimistic_draft_time=0.125,
        verification_in_flight_time=0.375,
    )
    assert statistics.accept_rate == 0.625
    assert statistics.acceptance_rate == pytest.approx(5 / 6)
    assert statistics.acceptance_length == 3.5
    assert statistics.execution_topology.value == "cross-device-split"


def test_rates_are_absent_when_nothing_was_drafted_or_judged():
    empty = SequenceStatistics()
    assert (None, None, None) == (
        empty.accept_rate,
        empty.acceptance_rate,
        empty.acceptance_length,
    )


def test_component_timings_add_up_and_mark_themselves_collected():
    timings = ComponentTimings(0.1, 0.2, 0.3, 0.4)
    statistics = SequenceStatistics().with_timings(timings).with_timings(timings)
    assert statistics.component_timings_collected
    assert (0.2, 0.4, 0.6, 0.8) == (
        statistics.draft_context_time,
        statistics.draft_assistant_time,
        statistics.draft_head_time,
        statistics.target_verification_time,
    )
    assert not SequenceStatistics().with_timings(None).component_timings_collected


@pytest.mark.parametrize(
    ("blocks", "reused", "discarded", "disabled"),
    [(3, 0, 9, False), (4, 0, 0, True), (4, 2, 3, True), (4, 3, 3, False)],
)
def test_lookahead_is_disabled_once_discarded_work_dominates(blocks, reused, discarded, disabled):
    statistics = SequenceStatistics(
        optimistic_draft_blocks=blocks,
        reused_optimistic_tokens=reused,
        discarded_optimistic_tokens=discarded,
    )
    decided = statistics.with_lookahead_decision(SchedulerOptions())
    assert decided.adaptive_lookahead_disabled is disabled
    fixed = replace(SchedulerOptions(), adaptive_lookahead=False)
    assert not statistics.with_lookahead_decision(fixed).adaptive_lookahead_disabled
