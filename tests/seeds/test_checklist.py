"""The lines of the seeds' checklists and the test that proves each of them: none is left out, and none names a test that is not there."""

from __future__ import annotations

import importlib

import pytest

STATES = "test_four_states"
ENDS = "test_three_terminations"
CANCELS = "test_three_cancellations"
REASONS = "test_stop_reasons"
TURNS = "test_max_turns"
ALL = "test_eleven_capabilities"

LINES: dict[str, str] = {
    # event loop: the four states
    "state 1 Think: receives the full message history": f"{STATES}:test_think_the_model_receives_the_full_history_each_time",
    "state 1 Think: a final answer or a request, nothing else": f"{STATES}:test_think_a_reply_is_a_final_answer_or_a_request_to_call_a_tool",
    "state 2 Act: validated against the tools, and run": f"{STATES}:test_act_the_request_is_validated_against_the_registered_tools_and_run",
    "state 3 Observe: file contents, stdout, an error are appended": f"{STATES}:test_observe_file_contents_command_stdout_and_an_error_are_appended_as_results",
    "state 4 Done: no tool calls, the answer is seen": f"{STATES}:test_done_a_reply_without_a_call_ends_the_loop_and_is_the_answer",
    "Think → Act → Observe → Think → Done": f"{STATES}:test_the_states_follow_each_other_think_act_observe_think_done",
    # event loop: termination
    "termination 1: no tool call (end_turn)": f"{ENDS}:test_1_the_model_returned_no_tool_call_end_turn",
    "termination 2: more than N iterations": f"{ENDS}:test_2_more_than_n_iterations_bails_out_loud",
    "termination 2: 25 for simple tasks, 100 for full sessions": f"{ENDS}:test_2_there_is_a_number_where_nobody_picked_one",
    "termination 3: identical observation, asks for help": f"{ENDS}:test_3_the_same_file_read_twice_in_a_row_asks_for_help",
    # async generator
    "cancellation: cooperative": f"{CANCELS}:test_cooperative_the_stop_is_seen_between_two_calls_and_partial_results_are_kept",
    "cancellation: immediate (return)": f"{CANCELS}:test_immediate_closing_the_generator_runs_its_finally_blocks_and_ends_the_running_command",
    "cancellation: timeout, network freed": f"{CANCELS}:test_timeout_the_api_call_is_aborted_and_its_connection_freed",
    "backpressure": "test_generator:test_backpressure_nothing_happens_while_the_consumer_does_not_take_the_next_event",
    "observable: each yield": "test_generator:test_observable_each_step_is_yielded_when_it_happens_and_not_at_the_end",
    "no stack overflow": "test_generator:test_no_stack_grows_with_the_turns",
    "errors are not swallowed": "test_generator:test_errors_are_yielded_as_events_and_results_and_never_swallowed",
    "nested generators": "test_generator:test_it_is_an_async_generator_and_composed_of_generators",
    # master loop
    "no intent classifier, no task router": "test_not_there:test_no_classifier_and_no_router_every_prompt_goes_as_it_is_to_one_model_with_all_tools",
    "no RAG/embedding pipeline": "test_not_there:test_no_retrieval_pipeline_nothing_embeds_or_indexes",
    "no DAG orchestrator, no planner/executor split": "test_not_there:test_no_planner_executor_split_and_no_graph_one_request_a_turn_all_of_one_conversation",
    "stop_reason tool_use": f"{REASONS}:test_tool_use_executes_every_tool_feeds_the_results_back_and_goes_on",
    "stop_reason end_turn": f"{REASONS}:test_end_turn_exits_and_returns_the_text",
    "stop_reason max_tokens": f"{REASONS}:test_max_tokens_runs_none_of_a_cut_replys_calls_and_asks_for_smaller_pieces",
    "fork_session: shared history, independent branches": "test_fork:test_a_branch_shares_the_history_up_to_the_fork_point_and_is_independent_after_it",
    "fork_session: simultaneously, each its own loop": "test_fork:test_both_branches_run_at_the_same_time_each_with_its_own_loop",
    "fork_session: other tools or prompts": "test_fork:test_branches_compare_other_tools_or_prompts_from_the_same_point",
    "fork_session: without re-running": "test_fork:test_nothing_of_the_shared_part_is_run_or_paid_again",
    "max_turns 5, 20-30, 50 by task type": f"{TURNS}:test_the_table_of_task_types",
    "max_turns: check stop_reason, fallback path": f"{TURNS}:test_the_final_stop_reason_is_max_turns_and_there_is_a_fallback",
    "max_turns: a slow task starves no other": f"{TURNS}:test_a_slow_task_does_not_use_up_the_turns_of_others",
    # master loop: the eleven native capabilities
    "capability 1: event hooks": f"{ALL}:test_1_event_hooks_bash_scripts_on_tool_execution_prompts_and_notification",
    "capability 2: skill-scoped hooks": f"{ALL}:test_2_skill_scoped_hooks_count_from_the_skills_invocation_to_the_end_of_the_session",
    "capability 3: background agents": f"{ALL}:test_3_background_agents_execute_long_work_while_the_conversation_goes_on",
    "capability 7: agent teams": f"{ALL}:test_7_agent_teams_coordinate_in_parallel_on_a_shared_list",
    "capability 4: Explore subagent": f"{ALL}:test_4_explore_subagent_is_read_only_codebase_exploration",
    "capability 5: Plan subagent": f"{ALL}:test_5_plan_subagent_read_only_planning_mode",
    "capability 6: Task tool": f"{ALL}:test_6_task_tool_hands_tasks_to_agents_in_parallel_depth_1",
    "capability 8: per-task model selection": f"{ALL}:test_8_per_task_model_selection_switches_in_mid_session",
    "capability 9: MCP": f"{ALL}:test_9_mcp_servers_extend_the_tools_with_claude_codes_names",
    "capability 10: permission modes": f"{ALL}:test_10_permission_modes_default_auto_accept_plan_and_bypass",
    "capability 11: session memory": f"{ALL}:test_11_session_memory_claude_md_memory_files_and_project_state",
    "capability 11: persistent context": f"{ALL}:test_11_a_session_goes_on_after_a_restart_of_the_kernel",
    "capability 10: custom rules": f"{ALL}:test_10_custom_rules_beat_the_mode",
}
"""Line of a seed → module and test that proves it."""


@pytest.mark.slow
@pytest.mark.parametrize("line", LINES)
def test_the_test_of_a_line_is_there(line: str) -> None:
    module, _, name = LINES[line].partition(":")
    found = getattr(importlib.import_module(f"tests.seeds.{module}"), name, None)
    assert callable(found), LINES[line]


def test_all_eleven_capabilities_have_a_test() -> None:
    numbers = {int(line.split()[1].rstrip(":")) for line in LINES if line.startswith("capability")}
    assert numbers == set(range(1, 12))
