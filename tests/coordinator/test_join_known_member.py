"""Acceptance tests for joins with a member id, from "The consumer group rebalance process"."""

from collections.abc import Callable

import pytest

from kohort.coordinator.config import GroupConfig
from kohort.coordinator.outcome import TimerKey, TimerKind
from kohort.coordinator.replies import RequestRefused
from kohort.types import ErrorCode, MemberId, Millis
from tests.coordinator.scenario import (
    GROUP,
    INITIAL_DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    Scenario,
    completing_pair,
    stable_pair,
    static_one,
    subscription_to,
)

MINUTE = 60_000


# doJoinGroup


def test_known_member_needs_a_common_protocol() -> None:
    """The consumer group rebalance process: supportsProtocols of a known member."""
    refused = (
        stable_pair()
        .join("b", "b-1", protocols=subscription_to("t", name="sticky"))
        .expect(RequestRefused)
    )

    assert (refused.error, refused.member_id) == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "b-1")


def test_pending_member_that_joins_is_added() -> None:
    """The consumer group rebalance process: isPendingMember."""
    scenario = Scenario()
    scenario.join("a")

    join = scenario.join("a", "a-1")

    assert join.is_parked
    assert scenario.state() == "PreparingRebalance"
    assert TimerKey(TimerKind.PENDING, GROUP, MemberId("a-1")) not in scenario.driver.timers


def test_static_member_cannot_use_a_pending_id() -> None:
    """The consumer group rebalance process: never a static member."""
    scenario = Scenario()
    scenario.join("a")

    assert scenario.join("a", "a-1", instance="i").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_old_member_id_of_a_restarted_static_member_is_fenced() -> None:
    """The consumer group rebalance process: isStaticMemberFenced."""
    scenario = static_one()
    scenario.join("a", instance="i")

    refused = scenario.join("a", "a-1", instance="i").expect(RequestRefused)

    assert (refused.error, refused.member_id) == (ErrorCode.FENCED_INSTANCE_ID, "a-1")


def test_parked_join_with_the_old_member_id_is_fenced() -> None:
    """The consumer group rebalance process: a second process with the same instance id."""
    scenario = static_one()
    scenario.admit("b")
    scenario.join("c")
    duplicate = scenario.join("a", "a-1", instance="i")
    assert duplicate.is_parked

    scenario.join("a", instance="i")

    assert duplicate.error is ErrorCode.FENCED_INSTANCE_ID
    assert {each.member_id for each in scenario.describe().members} == {"a-2", "b-1"}


def test_unknown_member_id_is_refused() -> None:
    """The consumer group rebalance process: not group.has(memberId)."""
    assert stable_pair().join("z", "z-1").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_unknown_instance_id_is_refused() -> None:
    """The consumer group rebalance process: groupInstanceIdNotFound."""
    assert stable_pair().join("a", "a-1", instance="i").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_rejoin_in_preparing_rebalance_updates_metadata_and_is_parked() -> None:
    """The consumer group rebalance process: PreparingRebalance."""
    scenario = stable_pair()
    leader = scenario.join("a", "a-1")

    scenario.join("b", "b-1", protocols=subscription_to("u"))

    metadata = {each.member_id: each.metadata for each in leader.joined.members}
    assert metadata == {
        "a-1": subscription_to("t")[0].metadata,
        "b-1": subscription_to("u")[0].metadata,
    }


def test_repeated_join_in_completing_rebalance_returns_the_generation() -> None:
    """The consumer group rebalance process: CompletingRebalance, matches."""
    scenario = completing_pair()

    leader, follower = scenario.join("a", "a-1").joined, scenario.join("b", "b-1").joined

    assert (leader.generation, follower.generation) == (1, 1)
    assert [each.member_id for each in leader.members] == ["a-1", "b-1"]
    assert follower.members == ()
    assert scenario.state() == "CompletingRebalance"


def test_changed_join_in_completing_rebalance_rebalances_again() -> None:
    """The consumer group rebalance process: CompletingRebalance, changed."""
    scenario = completing_pair()

    join = scenario.join("b", "b-1", protocols=subscription_to("t", "u"))

    assert join.is_parked
    assert scenario.state() == "PreparingRebalance"


def test_join_of_the_leader_rebalances_a_stable_group() -> None:
    """The consumer group rebalance process: Stable, group.isLeader."""
    scenario = stable_pair()

    assert scenario.join("a", "a-1").is_parked
    assert scenario.state() == "PreparingRebalance"


def test_changed_join_of_a_follower_rebalances_a_stable_group() -> None:
    """The consumer group rebalance process: Stable, not member.matches."""
    scenario = stable_pair()

    assert scenario.join("b", "b-1", protocols=subscription_to("t", "u")).is_parked
    assert scenario.state() == "PreparingRebalance"


def test_unchanged_join_of_a_follower_returns_the_current_generation() -> None:
    """The consumer group rebalance process: Stable, a follower that matches."""
    scenario = stable_pair()

    joined = scenario.join("b", "b-1").joined

    assert (joined.generation, joined.leader, joined.members) == (1, "a-1", ())
    assert (joined.protocol_type, joined.protocol) == ("consumer", "range")
    assert scenario.state() == "Stable"


def test_former_member_of_an_empty_group_is_unknown() -> None:
    """The consumer group rebalance process: Empty."""
    scenario = stable_pair()
    scenario.leave("a-1", "b-1")

    assert scenario.join("a", "a-1").error is ErrorCode.UNKNOWN_MEMBER_ID


# addMemberAndRebalance


def test_first_join_of_a_new_member_times_out_after_five_minutes() -> None:
    """The consumer group rebalance process: NewMemberJoinTimeoutMs."""
    scenario = Scenario()
    scenario.settle(scenario.admit("a", session_ms=20 * MINUTE, rebalance_ms=10 * MINUTE))
    join = scenario.admit("b")

    scenario.advance(5 * MINUTE - 1)
    assert join.is_parked
    scenario.advance(1)

    refused = join.expect(RequestRefused)
    assert (refused.error, refused.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "")


def test_new_members_extend_the_initial_delay() -> None:
    """The consumer group rebalance process: group.newMemberAdded."""
    scenario = Scenario()
    first = scenario.admit("a")
    scenario.advance(INITIAL_DELAY_MS - 1)
    second = scenario.admit("b")

    scenario.advance(1)
    assert first.is_parked
    scenario.advance(INITIAL_DELAY_MS)

    assert (first.joined.generation, second.joined.generation) == (1, 1)


def test_initial_delay_is_bounded_by_the_rebalance_timeout() -> None:
    """The consumer group rebalance process: max.poll.interval.ms bounds a rebalance."""
    scenario = Scenario()
    join = scenario.admit("a", rebalance_ms=7_000)
    for client in "bcdefg":
        scenario.advance(1_000)
        scenario.admit(client, rebalance_ms=7_000)
        assert join.is_parked

    scenario.advance(1_000)

    assert join.joined.generation == 1


@pytest.mark.parametrize("make", [Scenario, completing_pair, stable_pair])
def test_rebalance_can_begin_in_three_states(make: Callable[[], Scenario]) -> None:
    """The consumer group rebalance process: maybePrepareRebalance, canRebalance."""
    scenario = make()

    scenario.admit("z")

    assert scenario.state() == "PreparingRebalance"


# Timeouts


def test_member_is_removed_after_the_session_timeout() -> None:
    """The consumer group rebalance process: session.timeout.ms."""
    scenario = stable_pair()
    scenario.advance(SESSION_MS - 1)
    scenario.heartbeat("a-1", 1)

    scenario.advance(1)

    assert scenario.state() == "PreparingRebalance"
    assert [each.member_id for each in scenario.describe().members] == ["a-1"]


def test_largest_rebalance_timeout_limits_the_join_phase() -> None:
    """The consumer group rebalance process: max.poll.interval.ms."""
    scenario = Scenario()
    scenario.settle(
        scenario.admit("a", rebalance_ms=20_000, session_ms=MINUTE),
        scenario.admit("b", rebalance_ms=REBALANCE_MS, session_ms=2 * MINUTE),
    )
    scenario.sync("a-1", 1)
    scenario.sync("b-1", 1)
    rejoin = scenario.join("a", "a-1")

    scenario.advance(REBALANCE_MS - 1)
    assert rejoin.is_parked
    scenario.advance(1)

    assert [each.member_id for each in rejoin.joined.members] == ["a-1"]


def test_default_config_equals_kafkas() -> None:
    """The consumer group rebalance process: the settings it names."""
    config = GroupConfig()

    assert config.group_min_session_timeout_ms == Millis(6_000)
    assert config.group_max_session_timeout_ms == Millis(30 * MINUTE)
    assert config.group_new_member_join_timeout_ms == Millis(5 * MINUTE)
    assert config.group_max_size == 2**31 - 1
