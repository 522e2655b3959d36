"""The five documents this project began with, and the tests that hold us to each of them.

Every test of the `test_seed_*.py` files stands below once, under the heading it comes from.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Final

import pytest

from tests.coordinator import (
    test_seed_coordinator,
    test_seed_join,
    test_seed_protocol,
    test_seed_rebalance,
    test_seed_rejoin,
    test_seed_sync,
)

DOCUMENTS: Final[Mapping[str, str]] = {
    "000_9f907e76e4e22da0": "消费者组的 Rebalance 流程",
    "001_99667ab5cb6459d0": "重平衡时机回顾",
    "002_581633bd2c5ee13f": "kafka-rebalance之SyncGroup",
    "003_8ac1d63db61777d2": "Kafka Rebalance协议详解",
    "004_1643d7a5372cb6cf": "Kafka源码系列之八GroupCoordinator详解",
}
"""By the name of its file, what each is called."""

COVERED: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "000_9f907e76e4e22da0": {
        "handleJoinGroup": (
            "test_an_empty_group_id_is_invalid",
            "test_a_join_while_loading_is_told_so",
            "test_a_join_after_the_coordinator_moved_is_told_so",
            "test_a_session_timeout_out_of_range_is_invalid",
            "test_a_session_timeout_on_the_edge_is_valid",
            "test_a_member_without_id_brings_a_new_group_into_being",
            "test_a_known_member_of_an_unknown_group_is_unknown",
            "test_a_newcomer_finds_the_group_full",
            "test_the_last_to_rejoin_an_overfull_group_is_turned_away",
            "test_a_member_of_a_full_group_that_waits_already_may_ask_again",
            "test_a_join_that_everyone_waited_for_completes_the_phase",
        ),
        "doUnknownJoinGroup": (
            "test_a_dead_group_sends_joiners_to_look_for_a_coordinator",
            "test_a_newcomer_needs_a_protocol_all_members_share",
            "test_even_an_empty_group_needs_a_type_and_a_protocol",
            "test_a_dynamic_newcomer_is_given_an_id_and_told_to_come_back",
            "test_an_id_nobody_comes_back_with_is_dropped_after_the_session_timeout",
            "test_a_rebalance_waits_for_pending_members_until_they_expire",
            "test_a_client_that_cannot_come_back_is_added_at_once",
            "test_a_new_static_member_is_added_at_once",
            "test_a_static_member_that_restarts_takes_its_place_without_a_rebalance",
        ),
        "doJoinGroup": (
            "test_a_known_member_needs_a_shared_protocol_too",
            "test_a_pending_member_that_comes_back_is_added",
            "test_a_pending_id_is_of_no_use_to_a_static_member",
            "test_the_old_self_of_a_restarted_static_member_is_fenced",
            "test_a_twin_that_waits_under_the_old_id_is_fenced",
            "test_a_stranger_to_the_group_is_unknown",
            "test_an_instance_the_group_does_not_know_is_unknown",
            "test_a_rejoin_while_preparing_brings_new_metadata_and_waits",
            "test_a_repeated_join_while_completing_is_told_the_generation_again",
            "test_a_changed_join_while_completing_begins_anew",
            "test_the_leader_of_a_stable_group_rebalances_it_by_joining",
            "test_a_follower_with_a_change_rebalances_a_stable_group",
            "test_a_follower_without_a_change_is_told_the_present_generation",
            "test_a_former_member_of_an_empty_group_begins_anew",
        ),
        "addMemberAndRebalance": (
            "test_a_new_member_may_wait_five_minutes_in_its_first_join",
            "test_newcomers_extend_the_first_rebalance_while_they_keep_coming",
            "test_newcomers_cannot_extend_it_past_the_rebalance_timeout",
            "test_a_rebalance_can_begin_in_three_states",
        ),
        "session.timeout.ms, max.poll.interval.ms": (
            "test_a_member_not_heard_of_for_its_session_is_dead_to_the_group",
            "test_the_slowest_member_sets_how_long_a_rebalance_may_take",
            "test_limits_are_kafkas_unless_told_otherwise",
        ),
        "handleSyncGroup": (
            "test_a_sync_while_loading_sends_the_member_back_to_join",
            "test_a_sync_after_the_coordinator_moved_is_told_so",
            "test_a_sync_in_an_unknown_group_is_of_an_unknown_member",
        ),
        "doSyncGroup": (
            "test_a_dead_group_sends_syncs_to_look_for_a_coordinator",
            "test_a_sync_of_a_fenced_twin_is_refused",
            "test_a_sync_of_a_stranger_is_refused",
            "test_a_sync_of_another_generation_is_refused",
            "test_a_sync_under_another_protocol_is_refused",
            "test_a_sync_in_an_empty_group_is_of_an_unknown_member",
            "test_a_sync_while_preparing_sends_the_member_back_to_join",
            "test_a_sync_while_completing_waits_for_the_leader",
            "test_an_assignment_that_cannot_be_stored_is_refused_to_all_and_begins_anew",
            "test_a_sync_in_a_stable_group_is_answered_at_once",
            "test_a_sync_in_a_stable_group_leaves_the_session_to_heartbeats",
        ),
    },
    "001_99667ab5cb6459d0": {
        "1. 重平衡时机": (
            "test_a_change_in_the_number_of_consumers_rebalances",
            "test_a_change_in_the_subscribed_topics_rebalances",
            "test_the_leader_that_saw_the_partitions_change_rebalances",
        ),
        "2.1. 心跳线程": (
            "test_a_heartbeat_tells_the_others_that_a_rebalance_has_begun",
            "test_heartbeats_alone_keep_a_busy_member_alive",
            "test_the_heartbeat_interval_is_how_soon_a_member_knows",
        ),
        "2.2. 消费者组状态机": (
            "test_the_group_has_the_five_states",
            "test_an_empty_group_has_no_members_but_may_have_offsets",
            "test_a_dead_group_has_neither_members_nor_metadata",
            "test_a_preparing_group_waits_for_its_members_to_join",
            "test_a_completing_group_waits_for_the_assignment",
            "test_a_stable_group_lets_its_members_work",
            "test_a_group_goes_from_empty_through_both_phases_to_stable",
            "test_offsets_of_a_group_that_is_empty_for_seven_days_are_deleted",
            "test_offsets_of_a_group_with_members_do_not_expire",
        ),
        "2.3.1. 消费端请求": (
            "test_the_first_to_join_leads_and_learns_who_is_there",
            "test_a_follower_may_ask_for_its_share_before_or_after_the_leader",
        ),
        "2.3.2. broker接收请求": (
            "test_a_newcomer_makes_everyone_join_and_sync_again",
            "test_a_member_that_leaves_is_out_at_once",
            "test_a_member_that_crashes_is_out_after_its_session",
            "test_members_may_commit_until_they_rejoin",
            "test_the_time_for_commits_is_over_once_the_new_generation_is_there",
            "test_who_does_not_rejoin_in_time_is_out",
        ),
    },
    "002_581633bd2c5ee13f": {
        "发送请求": ("test_the_leaders_sync_carries_the_share_of_every_member",),
        "handleSyncGroup, doSyncGroup": (
            "test_only_the_leaders_assignment_counts",
            "test_members_the_leader_forgot_get_an_empty_share",
            "test_shares_for_strangers_are_ignored",
            "test_the_assignment_is_stored_before_anyone_hears_of_it",
            "test_a_group_that_moved_on_does_not_take_the_leaders_assignment",
        ),
        "setAndPropagateAssignment, 响应客户端": (
            "test_the_share_of_every_member_is_remembered",
            "test_only_those_who_wait_are_answered",
            "test_who_is_answered_must_be_heard_of_from_then_on",
            "test_a_member_parked_in_a_sync_need_not_be_heard_of",
            "test_every_generation_asks_the_leader_again",
        ),
    },
    "003_8ac1d63db61777d2": {
        "1. 核心角色": ("test_one_coordinator_keeps_groups_apart",),
        "2. Join Group阶段": (
            "test_everyone_asks_to_join_and_waits",
            "test_the_coordinator_picks_a_leader_and_answers_all",
        ),
        "3. Sync Group阶段": ("test_the_leaders_plan_reaches_every_consumer",),
        "4. Heartbeat阶段": (
            "test_all_consumers_send_heartbeats_and_are_heard",
            "test_every_heartbeat_starts_the_session_anew",
            "test_a_consumer_silent_for_its_session_is_given_up",
            "test_a_consumer_too_slow_to_poll_is_not_waited_for_for_ever",
        ),
        "5. 完整流程示例": (
            "test_partitions_change_hands_where_their_last_owner_stopped",
            "test_what_was_read_but_not_committed_is_read_again",
        ),
    },
    "004_1643d7a5372cb6cf": {
        "ApiKeys": ("test_every_api_the_document_lists_is_answered",),
        "启动": (
            "test_a_coordinator_answers_only_once_it_is_active",
            "test_a_coordinator_that_stopped_sends_everyone_away",
            "test_expired_metadata_is_looked_for_from_the_start_on_and_again_and_again",
        ),
        "GroupMetadata": (
            "test_a_new_group_is_empty_and_of_generation_zero",
            "test_a_formed_group_has_a_generation_a_leader_a_protocol_and_members",
            "test_the_group_counts_whom_it_still_waits_for",
            "test_the_group_counts_who_supports_what_and_takes_what_all_support",
            "test_committed_offsets_are_kept_by_partition",
            "test_an_offset_counts_only_once_its_commit_succeeded",
        ),
        "MemberMetadata": (
            "test_a_member_is_described_by_its_id_its_client_and_its_host",
            "test_a_members_timeouts_and_subscription_are_kept_with_the_group",
            "test_of_several_supported_protocols_the_chosen_ones_metadata_is_shown",
        ),
        "Offset请求处理": (
            "test_fetching_offsets_asks_for_some_or_for_all",
            "test_committing_offsets_keeps_metadata_and_epoch_with_them",
        ),
        "Group相关处理": (
            "test_describing_a_group_tells_of_every_member",
            "test_listing_groups_tells_of_every_group_and_its_state",
            "test_leaving_removes_the_member_and_moves_the_group",
        ),
        "心跳请求处理": (
            "test_the_coordinator_judges_by_heartbeats_who_is_alive",
            "test_the_client_senses_the_groups_state_by_heartbeats",
            "test_the_client_senses_its_own_past_by_heartbeats",
        ),
        "Group的状态机": (
            "test_a_state_has_the_previous_states_of_the_table",
            "test_a_step_that_is_not_in_the_table_is_not_taken",
        ),
    },
}
"""By document and heading, the tests that prove what it says."""

MODULES = (
    test_seed_join,
    test_seed_rejoin,
    test_seed_rebalance,
    test_seed_sync,
    test_seed_protocol,
    test_seed_coordinator,
)

TESTS: Mapping[str, Callable[..., None]] = {
    name: function
    for module in MODULES
    for name, function in inspect.getmembers(module, inspect.isfunction)
    if name.startswith("test_")
}


def test_every_document_has_tests_for_every_heading() -> None:
    assert COVERED.keys() == DOCUMENTS.keys()
    assert all(names for headings in COVERED.values() for names in headings.values())


def test_every_test_stands_in_the_table_once() -> None:
    named = [name for headings in COVERED.values() for names in headings.values() for name in names]

    assert sorted(named) == sorted(TESTS)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_docstring_of_every_test_names_its_document(document: str) -> None:
    head = f"{document}, {DOCUMENTS[document]}: "
    names = {name for names in COVERED[document].values() for name in names}

    assert {name for name in names if (TESTS[name].__doc__ or "").startswith(head)} == names
