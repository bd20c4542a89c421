"""Public reports of what breaks in servers like this one: what each says, and the tests of it."""

from collections.abc import Mapping

_SPEC = "cases/test_spec.py::"
_DRAFTS = "cases/test_drafts.py::"
_BUDGET = "cases/test_budget.py::"
_STOPS = "cases/test_stops.py::"
_VALIDATION = "cases/test_validation.py::"
_GRAMMAR = "cases/test_grammar.py::"
_REFUSALS = "service/rpc/test_generation_refusals.py::"
_CALLS = "service/rpc/test_generation_service.py::"
_PREPARATION = "service/runtime/test_preparation.py::"
_TEXT = "service/text/test_state.py::"
_COMPILED = "service/text/test_stops.py::"
_DIALECTS = "service/text/dialects/test_rounds.py::"
_ROWS = "engines/sampling/test_verification.py::"
_SEEDS = "cases/test_seeds.py::"
_LOGPROBS = "cases/test_logprobs.py::"
_MIROSTAT = "cases/test_mirostat.py::"
_TOOLS = "cases/test_tools.py::"
_REASONING = "cases/test_reasoning.py::"
_UTF8 = "cases/test_utf8.py::"
_DRAFT = "engines/proposers/draft_model/test_proposer.py::"
_FITTING = "engines/proposers/draft_model/test_compatibility.py::"
_LOOKUP = "engines/proposers/prompt_lookup/test_proposer.py::"
_INDEX = "engines/proposers/prompt_lookup/test_index.py::"
_BUILD = "engines/build/test_tokenizer.py::"
_SCORED = "service/runtime/test_logprobs.py::"
_DISTRIBUTION = "engines/sampling/test_distributions.py::"
_BLOCKS = "engines/sampling/test_rows.py::"

CASES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "B01": (
        "Greedy output changes when speculation is switched on.",
        (_SPEC + "test_b01_greedy_output_is_the_same_with_any_proposer_and_width",),
    ),
    "B02": (
        "The speculative path takes the likeliest token where it should sample.",
        (
            _SPEC + "test_b02_sampling_under_speculation_really_samples",
            _ROWS + "test_one_token_follows_the_target",
            _ROWS + "test_two_tokens_follow_the_target",
        ),
    ),
    "B04": (
        "The residual of a rejection is softened, and impossible tokens come out.",
        (
            _SPEC + "test_b04_residual_is_divided_by_its_sum",
            _ROWS + "test_token_without_target_probability_is_never_chosen",
            _DISTRIBUTION + "test_excess_is_divided_by_its_sum_not_softened",
        ),
    ),
    "B05": (
        "A rejection is noticed a round late: a word is lost, and what followed it stays.",
        (
            _SPEC + "test_b05_a_rejection_loses_no_text_and_keeps_every_token_within_its_set",
            _SPEC + "test_b05_sampled_stream_and_whole_answer_of_a_seed_are_one_text",
        ),
    ),
    "B06": (
        "A seed is ignored under speculation, or requests without one all draw the same.",
        (
            _SEEDS + "test_b06_a_seed_repeats_its_output_under_speculation_and_is_echoed",
            _SEEDS + "test_b06_requests_without_a_seed_differ_and_tell_the_seed_they_got",
            _SEEDS + "test_b06_zero_is_a_seed_like_any_other",
        ),
    ),
    "B08": (
        "Rejected proposals stay in a cache that cannot be rewound.",
        (
            _DRAFTS + "test_b08_rejected_proposals_leave_no_trace_in_the_cache",
            _DRAFTS + "test_b08_a_real_cache_is_rewound_behind_a_draft_that_errs",
            _DRAFTS + "test_b08_what_cannot_be_speculated_for_is_refused_aloud",
        ),
    ),
    "B09": (
        "A sequence outgrows the draft's window, or drafting the target's.",
        (
            _DRAFTS + "test_b09_a_draft_of_a_shorter_window_stops_drafting_at_its_end",
            _DRAFTS + "test_b09_drafts_are_cut_to_what_the_window_still_holds",
            _DRAFT + "test_nothing_is_proposed_beyond_the_drafts_context",
        ),
    ),
    "B10": (
        "Padding makes a fitting draft unfit, or another tokenizer passes for the same.",
        (
            _DRAFTS + "test_b10_a_padded_embedding_is_served_and_its_padding_never_chosen",
            _DRAFTS + "test_b10_a_draft_whose_token_100_is_another_is_refused_by_it",
            _BUILD + "test_padding_of_the_embedding_is_no_part_of_the_vocabulary",
            _DRAFT + "test_padding_of_the_vocabulary_is_never_proposed",
            _FITTING + "test_other_content_is_refused_by_the_first_token_that_differs",
        ),
    ),
    "B11": (
        "Prompt lookup fails on tiny prompts, or matches the end with itself.",
        (
            _DRAFTS + "test_b11_prompt_lookup_on_tiny_and_overlapping_prompts_changes_nothing",
            _DRAFTS + "test_b11_nothing_is_drafted_where_nothing_was_said_before",
            _DRAFTS + "test_b11_a_width_below_one_is_refused",
            _LOOKUP + "test_text_without_repetition_is_a_plain_step",
            _INDEX + "test_match_is_never_the_end_itself",
        ),
    ),
    "B15": (
        "What was drafted behind an end of the output is emitted all the same.",
        (
            _BUDGET + "test_b15_nothing_follows_an_end_in_the_middle_of_a_block",
            _TEXT + "test_stop_token_hides_its_text_unless_included",
            _TEXT + "test_silent_token_adds_no_text",
        ),
    ),
    "B17": (
        "The budget is looked at before the stop, and a stop within it leaks.",
        (
            _BUDGET + "test_b17_a_stop_within_the_budget_counts_before_the_budget",
            _BUDGET + "test_b17_a_stop_behind_the_budget_does_not_count",
            _BUDGET + "test_b17_a_stop_at_the_budgets_own_end_counts",
        ),
    ),
    "B18": (
        "A block is charged whole, so that fewer tokens come than usage says.",
        (
            _BUDGET + "test_b18_every_budget_is_met_exactly",
            _BUDGET + "test_b18_no_budget_is_the_stated_default",
            _REFUSALS + "test_budget_without_tokens_is_refused",
            _CALLS + "test_budget_left_out_is_the_stated_default",
        ),
    ),
    "B19": (
        "The minimum of tokens holds for a block's first row, or for a row too many.",
        (
            _BUDGET + "test_b19_the_minimum_holds_at_every_row_of_a_block",
            _BUDGET + "test_b19_the_minimum_holds_in_a_real_engines_blocks",
            _BUDGET + "test_b19_sampled_output_has_its_minimum_too",
        ),
    ),
    "B20": (
        "The beginning of a stop text is sent, or a text across tokens is never found.",
        (
            _STOPS + "test_b20_a_stop_across_tokens_is_found_and_none_of_it_is_sent",
            _TEXT + "test_stop_across_tokens_never_leaks_its_prefix",
            _TEXT + "test_stop_text_that_names_a_special_token_matches_it",
            _COMPILED + "test_compile_matches_the_name_of_a_special_token_by_its_id",
        ),
    ),
    "B21": (
        "Text that was held back is lost at the end, or sent twice.",
        (
            _STOPS + "test_b21_what_was_held_back_is_sent_once_and_whole",
            _TEXT + "test_near_match_is_sent_once",
            _TEXT + "test_repeated_near_match_is_released_whole",
            _TEXT + "test_finish_releases_what_is_held",
        ),
    ),
    "B22": (
        "An empty stop text takes the whole process down.",
        (
            _VALIDATION + "test_b22_an_empty_stop_ends_neither_the_process_nor_a_running_stream",
            _REFUSALS + "test_empty_stop_is_refused_while_another_stream_runs",
            _COMPILED + "test_compile_refuses_an_empty_text_by_its_place",
        ),
    ),
    "B24": (
        "A prompt of nothing, or one about as long as the window, kills the engine.",
        (
            _BUDGET + "test_b24_every_length_about_the_window_is_served_or_refused_in_words",
            _CALLS + "test_prompt_near_the_window_gets_what_fits",
            _REFUSALS + "test_prompt_beyond_the_window_is_refused",
            _REFUSALS + "test_empty_prompt_is_refused",
            _PREPARATION + "test_prompt_one_short_of_the_context_leaves_one_token",
        ),
    ),
    "B25": (
        "Log-probabilities are zero, missing or another row's under speculation.",
        (
            _LOGPROBS + "test_b25_greedy_values_are_those_of_plain_decoding",
            _LOGPROBS + "test_b25_sampled_values_are_the_targets_at_each_tokens_own_prefix",
            _SCORED + "test_each_committed_token_has_its_own_rows_value",
        ),
    ),
    "B26": (
        "Penalties count a block's last token alone, or one twice, or rejected ones.",
        (
            "cases/test_penalties.py::test_b26_penalties_count_every_token_of_a_block_once",
            _BLOCKS + "test_row_sees_the_proposals_before_it_and_no_others",
        ),
    ),
    "B28": (
        "Mirostat's state is not carried on, or not taken back with a rejection.",
        (
            _MIROSTAT + "test_b28_surprise_is_held_with_and_without_speculation",
            _MIROSTAT + "test_b28_ranks_are_drawn_alike_with_and_without_speculation",
            _MIROSTAT + "test_b28_mirostat_replaces_the_truncations_as_the_contract_says",
        ),
    ),
    "B29": (
        "Odd numbers pass and poison the arithmetic; a row without tokens kills more than itself.",
        (
            _VALIDATION + "test_b29_a_temperature_too_small_for_float32_is_greedy",
            _VALIDATION + "test_b29_a_top_p_of_zero_leaves_the_likeliest_token",
            _VALIDATION + "test_b29_a_top_k_beyond_the_vocabulary_is_off",
            _VALIDATION + "test_b29_values_out_of_range_are_refused_by_their_field",
            _VALIDATION + "test_b29_a_row_without_any_token_ends_its_own_stream_alone",
            _VALIDATION
            + "test_b29_what_came_before_a_row_without_any_token_stays_and_its_slot_is_freed",
        ),
    ),
    "B30": (
        "Ids beyond the vocabulary, huge numbers and unknown fields reach the engine.",
        (
            _VALIDATION + "test_b30_every_id_beyond_the_vocabulary_is_refused_where_it_stands",
            _VALIDATION + "test_b30_too_much_and_contradictions_are_refused",
            _VALIDATION + "test_b30_a_field_that_is_not_served_is_never_dropped",
            _PREPARATION + "test_token_ids_out_of_range_are_named_by_their_places",
            _COMPILED + "test_compile_names_every_bad_stop_at_once",
        ),
    ),
    "B31": (
        "Proposals behind the end of a grammar abort a valid answer.",
        (
            _GRAMMAR + "test_b31_a_draft_past_the_end_of_the_grammar_is_rejected_and_no_error",
            _TOOLS + "test_b31_a_draft_that_heeds_no_grammar_breaks_no_call",
            _GRAMMAR + "test_b31_a_real_engines_drafts_end_with_the_grammar",
        ),
    ),
    "B33": (
        "A malformed grammar kills the engine.",
        (
            _GRAMMAR + "test_b33_a_malformed_grammar_is_refused_in_the_parsers_words",
            "cases/test_tool_schemas.py::test_b33_a_malformed_schema_of_a_tool_is_refused_by_its_place",
            _GRAMMAR + "test_b33_a_nul_is_matched_or_refused_and_ends_nothing",
        ),
    ),
    "B35": (
        "Bounds of grammars are too narrow, forgotten, or absent.",
        (
            _GRAMMAR + "test_b35_long_strings_may_be_asked_for",
            _GRAMMAR + "test_b35_a_pattern_keeps_its_bound_of_length",
            _GRAMMAR + "test_b35_a_huge_schema_is_refused_soon_and_holds_up_nobody",
            _GRAMMAR + "test_b35_anchors_and_line_breaks_of_a_regex_are_no_text",
        ),
    ),
    "B36": (
        "Legal white space goes on until the budget ends, and the JSON is cut off.",
        (
            _GRAMMAR + "test_b36_white_space_ends_and_the_object_closes",
            _GRAMMAR + "test_b36_what_is_cut_off_says_so",
        ),
    ),
    "B37": (
        "Several tokens a delta break the arguments of a tool call.",
        (
            _TOOLS + "test_b37_arguments_arrive_once_whatever_a_round_holds",
            _DIALECTS + "test_call_in_rounds_has_one_name_and_one_object",
        ),
    ),
    "B39": (
        "A closing tag over two deltas leaks, and the answer counts as reasoning.",
        (
            _REASONING + "test_b39_a_closing_tag_is_found_at_every_cut",
            _REASONING + "test_b39_a_closing_tag_is_found_in_chunks_of_any_size",
            _REASONING + "test_b39_an_unfinished_tag_at_the_end_is_literal",
            _DIALECTS + "test_closing_tag_is_found_at_every_cut",
            _DIALECTS + "test_closing_tag_is_found_in_chunks",
            _DIALECTS + "test_cost_is_linear_in_the_length",
        ),
    ),
    "B40": (
        "Text that a parser of calls holds is lost when a stop ends the output.",
        (
            _TOOLS + "test_b40_a_stop_while_a_call_may_begin_loses_no_text",
            _DIALECTS + "test_stop_while_a_call_may_begin_loses_nothing",
            _DIALECTS + "test_stop_token_while_a_call_may_begin_loses_nothing",
        ),
    ),
    "B41": (
        "More tokens count as reasoning than the output has.",
        (
            _REASONING + "test_b41_reasoning_is_never_more_than_the_output",
            _REASONING + "test_b41_an_end_within_a_block_ends_the_count_too",
            _DIALECTS + "test_reasoning_tokens_are_those_up_to_the_closing_tag",
        ),
    ),
    "B42": (
        "A character over several tokens becomes a replacement in each piece.",
        (
            _UTF8 + "test_b42_a_character_over_several_tokens_arrives_whole",
            _UTF8 + "test_b42_a_stop_within_an_emoji_run_is_found",
            _TEXT + "test_character_spread_over_tokens_is_never_replaced",
            _TEXT + "test_stop_inside_an_emoji_run_is_found",
        ),
    ),
    "B44": (
        "A stream repeats its text, or ends without a reason, or hides which stop it was.",
        (
            "cases/test_stream.py::test_b44_every_stream_is_deltas_and_one_end_that_tells_why",
            _TEXT + "test_finish_sends_exactly_one_end_and_nothing_after",
        ),
    ),
}
