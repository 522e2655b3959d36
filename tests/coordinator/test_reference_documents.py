"""Which acceptance tests cover which section of the five documents that specify the project.

Every test of MODULES is in the table COVERED once, under the section that it comes from.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Final

import pytest

from tests.coordinator import (
    test_group_coordinator,
    test_join_known_member,
    test_join_new_member,
    test_rebalance_end_to_end,
    test_rebalance_lifecycle,
    test_sync_group,
)

DOCUMENTS: Final = (
    "The consumer group rebalance process",
    "When rebalances happen",
    "Kafka rebalance: SyncGroup",
    "The Kafka rebalance protocol in detail",
    "Kafka source code, part 8: GroupCoordinator",
)
"""English titles of the documents."""

COVERED: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "The consumer group rebalance process": {
        "handleJoinGroup": (
            "test_empty_group_id_is_invalid",
            "test_join_during_loading_is_refused",
            "test_join_after_shutdown_is_refused",
            "test_session_timeout_out_of_range_is_invalid",
            "test_session_timeout_at_the_limits_is_valid",
            "test_join_without_member_id_creates_the_group",
            "test_member_id_in_an_unknown_group_is_unknown",
            "test_new_member_of_a_full_group_is_refused",
            "test_last_member_to_rejoin_an_oversized_group_is_refused",
            "test_waiting_member_of_a_full_group_may_repeat_its_join",
            "test_last_join_completes_the_join_phase",
        ),
        "doUnknownJoinGroup": (
            "test_join_to_a_dead_group_is_refused",
            "test_new_member_needs_a_common_protocol",
            "test_empty_group_requires_protocol_type_and_protocols",
            "test_new_dynamic_member_gets_member_id_required",
            "test_unused_member_id_expires_after_the_session_timeout",
            "test_rebalance_waits_for_pending_members_until_they_expire",
            "test_old_client_is_added_without_member_id_required",
            "test_new_static_member_is_added_without_member_id_required",
            "test_restarted_static_member_is_replaced_without_a_rebalance",
        ),
        "doJoinGroup": (
            "test_known_member_needs_a_common_protocol",
            "test_pending_member_that_joins_is_added",
            "test_static_member_cannot_use_a_pending_id",
            "test_old_member_id_of_a_restarted_static_member_is_fenced",
            "test_parked_join_with_the_old_member_id_is_fenced",
            "test_unknown_member_id_is_refused",
            "test_unknown_instance_id_is_refused",
            "test_rejoin_in_preparing_rebalance_updates_metadata_and_is_parked",
            "test_repeated_join_in_completing_rebalance_returns_the_generation",
            "test_changed_join_in_completing_rebalance_rebalances_again",
            "test_join_of_the_leader_rebalances_a_stable_group",
            "test_changed_join_of_a_follower_rebalances_a_stable_group",
            "test_unchanged_join_of_a_follower_returns_the_current_generation",
            "test_former_member_of_an_empty_group_is_unknown",
        ),
        "addMemberAndRebalance": (
            "test_first_join_of_a_new_member_times_out_after_five_minutes",
            "test_new_members_extend_the_initial_delay",
            "test_initial_delay_is_bounded_by_the_rebalance_timeout",
            "test_rebalance_can_begin_in_three_states",
        ),
        "session.timeout.ms, max.poll.interval.ms": (
            "test_member_is_removed_after_the_session_timeout",
            "test_largest_rebalance_timeout_limits_the_join_phase",
            "test_default_config_equals_kafkas",
        ),
        "handleSyncGroup": (
            "test_sync_during_loading_returns_rebalance_in_progress",
            "test_sync_after_shutdown_is_refused",
            "test_sync_in_an_unknown_group_is_refused",
        ),
        "doSyncGroup": (
            "test_sync_in_a_dead_group_is_refused",
            "test_sync_of_a_fenced_static_member_is_refused",
            "test_sync_of_an_unknown_member_is_refused",
            "test_sync_with_another_generation_is_refused",
            "test_sync_with_another_protocol_is_refused",
            "test_sync_in_an_empty_group_is_refused",
            "test_sync_in_preparing_rebalance_returns_rebalance_in_progress",
            "test_sync_in_completing_rebalance_waits_for_the_leader",
            "test_failed_append_of_the_assignment_refuses_all_syncs_and_rebalances",
            "test_sync_in_a_stable_group_is_answered_at_once",
            "test_sync_in_a_stable_group_does_not_restart_the_session",
        ),
    },
    "When rebalances happen": {
        "1. When a group rebalances": (
            "test_new_consumer_triggers_a_rebalance",
            "test_changed_subscription_triggers_a_rebalance",
            "test_leader_rejoin_after_a_partition_change_triggers_a_rebalance",
        ),
        "2.1. Heartbeat thread": (
            "test_heartbeat_response_announces_a_rebalance",
            "test_heartbeats_keep_a_busy_member_alive",
            "test_member_learns_of_a_rebalance_within_the_heartbeat_interval",
        ),
        "2.2. Group state machine": (
            "test_group_has_five_states",
            "test_empty_group_has_no_members_but_may_have_offsets",
            "test_dead_group_has_neither_members_nor_metadata",
            "test_preparing_rebalance_waits_for_joins",
            "test_completing_rebalance_waits_for_the_assignment",
            "test_stable_group_accepts_commits_and_heartbeats",
            "test_group_passes_through_both_phases_to_stable",
            "test_offsets_of_an_empty_group_expire_after_seven_days",
            "test_offsets_of_a_group_with_members_do_not_expire",
        ),
        "2.3.1. Requests of consumers": (
            "test_first_member_is_the_leader_and_gets_the_member_list",
            "test_follower_may_sync_before_or_after_the_leader",
        ),
        "2.3.2. Requests received by the broker": (
            "test_new_member_makes_all_members_join_and_sync_again",
            "test_leaving_member_is_removed_at_once",
            "test_crashed_member_is_removed_after_its_session",
            "test_members_may_commit_until_they_rejoin_the_group",
            "test_commits_of_the_old_generation_are_refused_after_the_rebalance",
            "test_member_that_does_not_rejoin_in_time_is_removed",
        ),
    },
    "Kafka rebalance: SyncGroup": {
        "Sending the request": ("test_sync_of_the_leader_has_the_assignment_of_every_member",),
        "handleSyncGroup, doSyncGroup": (
            "test_only_the_assignment_of_the_leader_is_used",
            "test_omitted_members_get_an_empty_assignment",
            "test_assignments_of_unknown_members_are_ignored",
            "test_assignment_is_stored_before_any_response",
            "test_assignment_of_an_earlier_generation_is_ignored",
        ),
        "setAndPropagateAssignment, response to the client": (
            "test_assignment_of_every_member_is_stored",
            "test_only_parked_syncs_are_answered",
            "test_session_starts_with_the_sync_response",
            "test_parked_sync_suspends_the_session_timeout",
            "test_every_generation_needs_a_new_assignment",
        ),
    },
    "The Kafka rebalance protocol in detail": {
        "1. Core roles": ("test_groups_are_independent",),
        "2. Join Group phase": (
            "test_joins_are_parked",
            "test_coordinator_elects_a_leader_and_answers_all_joins",
        ),
        "3. Sync Group phase": ("test_assignment_of_the_leader_reaches_every_consumer",),
        "4. Heartbeat phase": (
            "test_heartbeats_of_all_consumers_are_accepted",
            "test_every_heartbeat_restarts_the_session",
            "test_consumer_without_heartbeats_is_removed_after_its_session",
            "test_consumer_that_does_not_rejoin_is_removed_at_the_rebalance_timeout",
        ),
        "5. Complete example": (
            "test_new_owner_continues_at_the_committed_offset",
            "test_uncommitted_records_are_read_again",
        ),
    },
    "Kafka source code, part 8: GroupCoordinator": {
        "ApiKeys": ("test_every_listed_api_is_answered",),
        "Start": (
            "test_coordinator_answers_only_when_active",
            "test_stopped_coordinator_refuses_all_requests",
            "test_expiry_runs_periodically_from_the_start",
        ),
        "GroupMetadata": (
            "test_new_group_is_empty_with_generation_zero",
            "test_stable_group_has_generation_leader_protocol_and_members",
            "test_group_counts_members_awaiting_join",
            "test_group_chooses_a_protocol_that_all_members_support",
            "test_committed_offsets_are_stored_per_partition",
            "test_offset_is_visible_only_after_its_commit_succeeded",
        ),
        "MemberMetadata": (
            "test_member_has_id_client_id_and_host",
            "test_member_timeouts_and_subscription_are_stored",
            "test_metadata_of_the_chosen_protocol_is_described",
        ),
        "Offset requests": (
            "test_offset_fetch_returns_some_or_all_offsets",
            "test_offset_commit_stores_metadata_and_leader_epoch",
        ),
        "Group requests": (
            "test_describe_groups_returns_every_member",
            "test_list_groups_returns_every_group_and_state",
            "test_leave_group_removes_the_member_and_changes_the_state",
        ),
        "Heartbeat requests": (
            "test_missing_heartbeats_remove_a_member",
            "test_heartbeat_response_reports_the_group_state",
            "test_heartbeat_with_an_old_generation_is_refused",
        ),
        "Group state machine": (
            "test_state_has_the_previous_states_of_the_document",
            "test_transition_that_is_not_in_the_document_is_illegal",
        ),
    },
}
"""The tests by document and section."""

MODULES = (
    test_join_new_member,
    test_join_known_member,
    test_rebalance_lifecycle,
    test_sync_group,
    test_rebalance_end_to_end,
    test_group_coordinator,
)

TESTS: Mapping[str, Callable[..., None]] = {
    name: function
    for module in MODULES
    for name, function in inspect.getmembers(module, inspect.isfunction)
    if name.startswith("test_")
}


def test_every_section_has_tests() -> None:
    assert tuple(COVERED) == DOCUMENTS
    assert all(names for sections in COVERED.values() for names in sections.values())


def test_every_test_is_in_the_table_once() -> None:
    named = [name for sections in COVERED.values() for names in sections.values() for name in names]

    assert sorted(named) == sorted(TESTS)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_test_docstrings_name_their_document(document: str) -> None:
    head = f"{document}: "
    names = {name for names in COVERED[document].values() for name in names}

    assert {name for name in names if (TESTS[name].__doc__ or "").startswith(head)} == names
