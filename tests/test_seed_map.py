"""Every test of eredu-core, the seed of this core, exists by its meaning: the map, its check."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent / "service"

CONFIGURATION_SEED = {
    "terminal_precedence_and_cancellation_are_canonical": (
        "generation/test_sequence.py::test_terminal_precedence_and_cancellation_are_canonical"
    ),
    "speculative_commit_plan_preserves_trailing_token_cache_semantics": (
        "speculation/test_round.py::test_commit_plan_keeps_the_trailing_token_out_of_the_cache"
    ),
    "optimistic_reuse_is_pure_and_fail_closed": (
        "speculation/test_reuse.py::"
        "test_optimistic_reuse_fails_closed_on_another_prefix_or_an_empty_branch"
    ),
    "sampler_and_scheduler_configuration_validate_without_a_backend": (
        "generation/test_config.py::test_checkpoint_values_hold_where_the_request_is_silent"
    ),
    "semantic_events_round_trip_without_a_backend": (
        "generation/test_events.py::test_semantic_event_is_a_value_that_keeps_its_fields"
    ),
    "speculative_request_lifecycle_defers_cancellation_exactly": (
        "speculation/test_lifecycle.py::"
        "test_cancellation_is_deferred_while_a_submission_is_retained"
    ),
}

_TABLE = "speculation/test_table.py::"
_POLICY = "speculation/test_policy.py::"
_DRAFT = "speculation/test_drafting_and_resolution.py::"
SPECULATION_SEED = {
    "speculative_telemetry_preserves_exact_statistics_and_durations": (
        "speculation/test_statistics.py::test_statistics_keep_exact_counters_and_durations"
    ),
    "speculative_capability_schema_round_trips_without_backend_identity": (
        "speculation/test_capability.py::"
        "test_unsupported_capability_is_a_value_with_source_and_architecture"
    ),
    "declared_capability_admits_preparation_without_claiming_execution_readiness": (
        "speculation/test_capability.py::"
        "test_declared_capability_admits_preparation_without_claiming_readiness"
    ),
    "only_ready_capability_claims_immediate_execution": (
        "speculation/test_capability.py::test_only_ready_capability_claims_immediate_execution"
    ),
    "core_semantic_publisher_commits_and_cancels_without_backend_errors": (
        "speculation/test_publication.py::"
        "test_publisher_delivers_a_committed_round_with_its_events_once"
    ),
    "mock_executor_prefill_propose_verify_and_commit_without_a_tensor_runtime": (
        _DRAFT + "test_engine_prefills_verifies_and_commits_without_a_tensor_runtime"
    ),
    "execution_topology_is_a_portable_schema": (
        "speculation/test_capability.py::"
        "test_topology_has_a_spelling_for_people_and_one_for_schemas"
    ),
    "request_table_consumes_explicit_production_lifecycle_observation": (
        _TABLE + "test_table_shows_every_boundary_to_the_observer_in_order"
    ),
    "input_and_execution_observer_failures_prevent_prefill_and_publication": (
        _TABLE + "test_observer_failure_before_prefill_prevents_it_and_its_publication"
    ),
    "deterministic_proposal_policy_uses_only_target_selection": (
        _POLICY + "test_greedy_judgement_asks_only_for_the_targets_choice"
    ),
    "neutral_randomness_assigns_target_then_position_stable_draft": (
        _POLICY + "test_randomness_gives_the_target_a_stream_and_the_draft_positions"
    ),
    "stochastic_proposal_policy_causally_selects_acceptance_or_residual": (
        _POLICY + "test_stochastic_judgement_accepts_or_draws_from_the_residual"
    ),
    "portable_driver_proposes_and_resolves_acceptance_and_replacement": (
        _DRAFT + "test_block_is_drafted_accepted_once_and_then_replaced_on_copies"
    ),
    "portable_schedule_is_fair_and_respects_retained_capacity": (
        "speculation/test_schedule.py::"
        "test_one_lane_schedule_is_fair_and_respects_retained_capacity"
    ),
    "request_table_owns_actions_resources_fairness_and_deferred_cancellation": (
        _TABLE + "test_table_owns_actions_fairness_and_deferred_cancellation"
    ),
    "request_table_applies_optimistic_actions_without_backend_scheduler_state": (
        _TABLE + "test_table_drafts_ahead_and_discards_a_branch_that_does_not_match"
    ),
    "request_table_promotes_only_the_exact_matching_optimistic_suffix": (
        _TABLE + "test_table_promotes_only_the_exact_matching_suffix"
    ),
    "request_table_draft_generation_stops_at_the_sampler_grammar_boundary": (
        _TABLE + "test_drafting_stops_where_the_grammar_is_complete"
    ),
    "coordinator_commits_before_publication_and_discards_mismatched_lookahead": (
        _TABLE + "test_round_commits_before_it_publishes_and_discards_mismatched_lookahead"
    ),
    "coordinator_cancels_only_after_retained_verification_is_safe": (
        _TABLE + "test_cancellation_in_flight_keeps_one_input_and_publishes_no_token"
    ),
    "observation_and_cache_persistence_failures_restore_before_publication": (
        _TABLE + "test_observer_failure_before_the_commit_restores_and_publishes_nothing"
    ),
    "cancellation_observer_failure_prevents_terminal_mutation_and_publication": (
        _TABLE + "test_cancellation_observer_failure_keeps_the_request_out"
    ),
    "prefill_publication_failure_restores_cache_and_logical_state": (
        _TABLE + "test_prefill_publication_failure_restores_cache_and_logical_state"
    ),
    "pending_cancellation_publication_failure_restores_cache_without_cancelling_sequence": (
        _TABLE + "test_pending_cancellation_that_cannot_be_published_restores_the_cache"
    ),
    "direct_cancellation_publication_failure_restores_lifecycle_and_sequence": (
        _TABLE + "test_direct_cancellation_that_cannot_be_published_changes_nothing"
    ),
    "publication_observer_failure_occurs_after_commit_but_before_publisher": (
        _TABLE + "test_publication_observer_failure_comes_after_the_commit_and_before_the_publisher"
    ),
    "request_table_accounts_nonzero_cache_replay_after_delayed_exact_completion": (
        _TABLE + "test_replayed_tokens_are_counted_after_a_delayed_completion"
    ),
    "request_table_completion_failure_restores_cache_before_any_new_publication": (
        _TABLE + "test_failed_completion_restores_before_any_new_publication"
    ),
    "request_table_never_resolving_completion_retains_capacity_without_wait_or_publication": (
        _TABLE + "test_pass_that_never_ends_keeps_its_capacity_without_wait_or_publication"
    ),
    "delayed_completion_retains_every_resource_and_waits_before_commit_or_publication": (
        _TABLE + "test_delayed_completion_keeps_every_resource_until_it_was_waited_for"
    ),
    "completion_failure_drops_resources_and_restores_every_checkpoint_without_publication": (
        _TABLE + "test_failed_completion_gives_up_every_resource_and_installs_nothing"
    ),
    "invalid_direct_completion_policy_disposes_work_before_restore": (
        _TABLE + "test_invalid_completion_policy_disposes_of_the_work_before_it_restores"
    ),
    "publisher_failure_restores_backend_and_keeps_logical_state_uncommitted": (
        _TABLE + "test_publisher_failure_restores_the_engine_and_keeps_logical_state"
    ),
    "commit_failure_restores_target_and_draft_checkpoints_without_promotion": (
        _TABLE + "test_commit_failure_restores_without_promotion_or_publication"
    ),
    "pending_cancellation_waits_commits_safe_prefix_and_discards_draft_state": (
        _TABLE + "test_pending_cancellation_waits_commits_the_safe_prefix_and_drops_the_draft"
    ),
    "restore_failure_is_an_explicit_indeterminate_backend_error_without_publication": (
        _TABLE + "test_restore_failure_is_chained_and_retires_the_slot"
    ),
}


def test_map_covers_the_seeds_six_and_thirty_six_tests():
    assert (6, 36) == (len(CONFIGURATION_SEED), len(SPECULATION_SEED))


@pytest.mark.parametrize(
    ("seed_test", "ours"),
    sorted((CONFIGURATION_SEED | SPECULATION_SEED).items()),
)
def test_seed_test_exists_here_and_asserts_something(seed_test, ours):
    path, name = ours.split("::")
    functions = {
        node.name: node
        for node in ast.parse((ROOT / path).read_text()).body
        if isinstance(node, ast.FunctionDef)
    }
    assert name in functions, seed_test
    body = list(ast.walk(functions[name]))
    assert any(isinstance(node, ast.Assert | ast.With) for node in body), seed_test
