"""Acceptance tests for the triggers and states of a rebalance, from "When rebalances happen"."""

from kohort.coordinator.commands import DeleteGroups
from kohort.coordinator.events import RebalanceStarted, StateChanged, Trigger
from kohort.coordinator.groups.classic.states import MEANING, GroupState
from kohort.coordinator.outcome import TimerKey, TimerKind
from kohort.coordinator.replies import DeleteGroupsAnswered, HeartbeatAccepted, LeaveAnswered
from kohort.types import ErrorCode
from tests.coordinator.scenario import (
    GROUP,
    INITIAL_DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    TOPIC,
    Scenario,
    assignment_of,
    completing_pair,
    stable_pair,
    subscription_to,
)

DAY_MS = 24 * 60 * 60_000


def triggers(scenario: Scenario) -> list[Trigger]:
    return [
        event.trigger for event in scenario.driver.events if isinstance(event, RebalanceStarted)
    ]


def states(scenario: Scenario) -> list[GroupState]:
    return [event.after for event in scenario.driver.events if isinstance(event, StateChanged)]


# 1. When a group rebalances


def test_new_consumer_triggers_a_rebalance() -> None:
    """When rebalances happen: the number of consumers changes."""
    scenario = stable_pair()

    scenario.admit("c")

    assert triggers(scenario)[-1] is Trigger.MEMBER_JOINED
    assert scenario.state() == "PreparingRebalance"


def test_changed_subscription_triggers_a_rebalance() -> None:
    """When rebalances happen: the number of subscribed topics changes."""
    scenario = stable_pair()

    scenario.join("b", "b-1", protocols=subscription_to(TOPIC, "another"))

    assert triggers(scenario)[-1] is Trigger.SUBSCRIPTION_CHANGED
    assert scenario.state() == "PreparingRebalance"


def test_leader_rejoin_after_a_partition_change_triggers_a_rebalance() -> None:
    """When rebalances happen: the number of partitions changes."""
    scenario = stable_pair()

    scenario.join("a", "a-1")

    assert triggers(scenario)[-1] is Trigger.LEADER_REJOINED
    assert scenario.state() == "PreparingRebalance"


# 2.1. Heartbeat thread


def test_heartbeat_response_announces_a_rebalance() -> None:
    """When rebalances happen: REBALANCE_IN_PROGRESS in the heartbeat's answer."""
    scenario = stable_pair()
    assert scenario.heartbeat("a-1", 1).error is ErrorCode.NONE

    scenario.admit("c")

    for member in ("a-1", "b-1"):
        assert scenario.heartbeat(member, 1).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_heartbeats_keep_a_busy_member_alive() -> None:
    """When rebalances happen: a heartbeat thread of its own."""
    scenario = Scenario()
    scenario.form("a")

    for _ in range(100):
        scenario.advance(3_000)
        assert isinstance(scenario.heartbeat("a-1", 1).reply, HeartbeatAccepted)

    assert scenario.state() == "Stable"


def test_member_learns_of_a_rebalance_within_the_heartbeat_interval() -> None:
    """When rebalances happen: heartbeat.interval.ms."""
    scenario = stable_pair()
    new_member = scenario.admit("c")
    began_ms = scenario.driver.now

    scenario.advance(3_000)
    for client in ("a", "b"):
        assert scenario.heartbeat(f"{client}-1", 1).error is ErrorCode.REBALANCE_IN_PROGRESS
        scenario.join(client, f"{client}-1")

    assert new_member.joined.generation == 2
    assert scenario.driver.now - began_ms == 3_000


# 2.2. Group state machine


def test_group_has_five_states() -> None:
    """When rebalances happen: five states of a group."""
    assert set(MEANING) == set(GroupState)
    assert {str(state).lower() for state in GroupState} == {
        "empty",
        "dead",
        "preparingrebalance",
        "completingrebalance",
        "stable",
    }


def test_empty_group_has_no_members_but_may_have_offsets() -> None:
    """When rebalances happen: empty."""
    scenario = stable_pair()
    scenario.commit({0: 42}, "a-1", 1)

    scenario.leave("a-1", "b-1")

    described = scenario.describe()
    assert (described.state, described.members) == ("Empty", ())
    assert scenario.committed(0) == [42]


def test_dead_group_has_neither_members_nor_metadata() -> None:
    """When rebalances happen: dead."""
    scenario = Scenario()
    scenario.commit({0: 42})

    deleted = scenario.send(lambda ticket: DeleteGroups(ticket=ticket, group_ids=(GROUP,)))

    assert deleted.expect(DeleteGroupsAnswered).results[0].error is ErrorCode.NONE
    described = scenario.describe()
    assert (described.state, described.error) == ("Dead", ErrorCode.GROUP_ID_NOT_FOUND)
    assert scenario.committed(0) == [-1]


def test_preparing_rebalance_waits_for_joins() -> None:
    """When rebalances happen: PreparingRebalance."""
    scenario = stable_pair()

    join = scenario.join("a", "a-1")

    assert scenario.state() == "PreparingRebalance"
    assert join.is_parked


def test_completing_rebalance_waits_for_the_assignment() -> None:
    """When rebalances happen: CompletingRebalance."""
    scenario = completing_pair()

    sync = scenario.sync("b-1", 1)

    assert scenario.state() == "CompletingRebalance"
    assert sync.is_parked


def test_stable_group_accepts_commits_and_heartbeats() -> None:
    """When rebalances happen: Stable."""
    scenario = stable_pair()

    assert scenario.heartbeat("b-1", 1).error is ErrorCode.NONE
    assert scenario.commit({0: 1}, "b-1", 1).error is ErrorCode.NONE


def test_group_passes_through_both_phases_to_stable() -> None:
    """When rebalances happen: Empty, PreparingRebalance, Completing, Stable."""
    scenario = Scenario()

    scenario.form("a")

    assert states(scenario) == [
        GroupState.PREPARING_REBALANCE,
        GroupState.COMPLETING_REBALANCE,
        GroupState.STABLE,
    ]


def test_offsets_of_an_empty_group_expire_after_seven_days() -> None:
    """When rebalances happen: more than 7 days."""
    scenario = stable_pair()
    scenario.commit({0: 42}, "a-1", 1)
    scenario.leave("a-1", "b-1")

    scenario.advance(7 * DAY_MS - 1)
    assert scenario.committed(0) == [42]
    scenario.advance(scenario.driver.config.offsets_retention_check_interval_ms)

    assert scenario.committed(0) == [-1]
    assert scenario.state() == "Dead"


def test_offsets_of_a_group_with_members_do_not_expire() -> None:
    """When rebalances happen: the group must be Empty."""
    scenario = Scenario()
    join = scenario.admit("a", session_ms=30 * 60_000)
    scenario.settle(join)
    scenario.sync("a-1", 1)
    scenario.commit({0: 42}, "a-1", 1)

    while scenario.driver.now < 8 * DAY_MS:
        scenario.advance(20 * 60_000)
        scenario.heartbeat("a-1", 1)

    assert scenario.committed(0) == [42]


# 2.3.1. Requests of consumers


def test_first_member_is_the_leader_and_gets_the_member_list() -> None:
    """When rebalances happen: the first member that joins is the leader."""
    scenario = Scenario()
    joins = [scenario.admit(client) for client in "abc"]
    scenario.settle(*joins)

    leader, *followers = (join.joined for join in joins)

    assert [each.member_id for each in leader.members] == ["a-1", "b-1", "c-1"]
    assert leader.members[1].metadata == subscription_to(TOPIC)[0].metadata
    assert {each.leader for each in (leader, *followers)} == {"a-1"}
    assert [each.members for each in followers] == [(), ()]


def test_follower_may_sync_before_or_after_the_leader() -> None:
    """When rebalances happen: the coordinator returns an existing assignment."""
    scenario = Scenario()
    scenario.settle(*(scenario.admit(client) for client in "abc"))
    shares = {f"{client}-1": assignment_of(client) for client in "abc"}

    before = scenario.sync("b-1", 1)
    assert before.is_parked
    scenario.sync("a-1", 1, shares)
    after = scenario.sync("c-1", 1)

    assert (before.assignment, after.assignment) == (assignment_of("b"), assignment_of("c"))


# 2.3.2. Requests received by the broker


def test_new_member_makes_all_members_join_and_sync_again() -> None:
    """When rebalances happen: a new member joins."""
    scenario = stable_pair()
    new_member = scenario.admit("c")
    assert scenario.heartbeat("a-1", 1).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert scenario.heartbeat("b-1", 1).error is ErrorCode.REBALANCE_IN_PROGRESS

    leader, follower = scenario.join("a", "a-1"), scenario.join("b", "b-1")
    waiting = [scenario.sync(member, 2) for member in ("b-1", "c-1")]
    scenario.sync("a-1", 2, {"b-1": b"less", "c-1": b"some"})

    assert {join.joined.generation for join in (leader, follower, new_member)} == {2}
    assert [sync.assignment for sync in waiting] == [b"less", b"some"]
    assert scenario.state() == "Stable"


def test_leaving_member_is_removed_at_once() -> None:
    """When rebalances happen: a member leaves."""
    scenario = stable_pair()

    left = scenario.leave("b-1").expect(LeaveAnswered)

    assert [each.error for each in left.members] == [ErrorCode.NONE]
    assert [each.member_id for each in scenario.describe().members] == ["a-1"]
    assert triggers(scenario)[-1] is Trigger.MEMBER_LEFT
    assert scenario.heartbeat("a-1", 1).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert scenario.join("a", "a-1").joined.generation == 2


def test_crashed_member_is_removed_after_its_session() -> None:
    """When rebalances happen: a member crashes, session.timeout.ms."""
    scenario = stable_pair()
    for _ in range(3):
        scenario.advance(3_000)
        assert scenario.heartbeat("a-1", 1).error is ErrorCode.NONE

    scenario.advance(SESSION_MS - 9_000)

    assert triggers(scenario)[-1] is Trigger.SESSION_EXPIRED
    assert scenario.heartbeat("a-1", 1).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert scenario.heartbeat("b-1", 1).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_members_may_commit_until_they_rejoin_the_group() -> None:
    """When rebalances happen: offsets, members have time to commit."""
    scenario = stable_pair()
    scenario.admit("c")

    accepted = scenario.commit({0: 42}, "b-1", 1)

    assert accepted.error is ErrorCode.NONE
    assert scenario.committed(0) == [42]


def test_commits_of_the_old_generation_are_refused_after_the_rebalance() -> None:
    """When rebalances happen: offsets, the time is short."""
    scenario = completing_pair()

    assert scenario.commit({0: 42}, "b-1", 1).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert scenario.commit({0: 42}, "b-1", 0).error is ErrorCode.ILLEGAL_GENERATION
    assert scenario.committed(0) == [-1]


def test_member_that_does_not_rejoin_in_time_is_removed() -> None:
    """When rebalances happen: offsets, the time to rejoin ends."""
    scenario = stable_pair()
    new_member = scenario.admit("c")
    deadline = scenario.driver.now + REBALANCE_MS
    assert scenario.driver.timers[TimerKey(TimerKind.JOIN, GROUP)] == deadline
    scenario.join("a", "a-1")

    while scenario.driver.now < deadline:
        scenario.advance(INITIAL_DELAY_MS)
        scenario.heartbeat("b-1", 1)

    assert new_member.joined.generation == 2
    assert [each.member_id for each in scenario.describe().members] == ["a-1", "c-1"]
