"""000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: joining with an id, and its timeouts."""

from collections.abc import Callable

import pytest

from kohort.coordinator.limits import Limits
from kohort.coordinator.outcome import TimerKey, TimerKind
from kohort.coordinator.replies import Refused
from kohort.types import ErrorCode, MemberId, Millis
from tests.coordinator.scene import (
    GROUP,
    INITIAL_DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    Scene,
    completing_pair,
    reads,
    stable_pair,
    static_one,
)

MINUTE = 60_000


# doJoinGroup


def test_a_known_member_needs_a_shared_protocol_too() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: supportsProtocols of a known member."""
    refused = stable_pair().join("b", "b-1", protocols=reads("t", name="sticky")).told(Refused)

    assert (refused.error, refused.member_id) == (ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "b-1")


def test_a_pending_member_that_comes_back_is_added() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: isPendingMember."""
    scene = Scene()
    scene.join("a")

    join = scene.join("a", "a-1")

    assert join.is_parked
    assert scene.state() == "PreparingRebalance"
    assert TimerKey(TimerKind.PENDING, GROUP, MemberId("a-1")) not in scene.driver.timers


def test_a_pending_id_is_of_no_use_to_a_static_member() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: never a static member."""
    scene = Scene()
    scene.join("a")

    assert scene.join("a", "a-1", instance="i").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_the_old_self_of_a_restarted_static_member_is_fenced() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: isStaticMemberFenced."""
    scene = static_one()
    scene.join("a", instance="i")

    refused = scene.join("a", "a-1", instance="i").told(Refused)

    assert (refused.error, refused.member_id) == (ErrorCode.FENCED_INSTANCE_ID, "a-1")


def test_a_twin_that_waits_under_the_old_id_is_fenced() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: the twin of a static member."""
    scene = static_one()
    scene.admit("b")
    scene.join("c")
    twin = scene.join("a", "a-1", instance="i")
    assert twin.is_parked

    scene.join("a", instance="i")

    assert twin.error is ErrorCode.FENCED_INSTANCE_ID
    assert {each.member_id for each in scene.describe().members} == {"a-2", "b-1"}


def test_a_stranger_to_the_group_is_unknown() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: not group.has(memberId)."""
    assert stable_pair().join("z", "z-1").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_instance_the_group_does_not_know_is_unknown() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: groupInstanceIdNotFound."""
    assert stable_pair().join("a", "a-1", instance="i").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rejoin_while_preparing_brings_new_metadata_and_waits() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: PreparingRebalance."""
    scene = stable_pair()
    leader = scene.join("a", "a-1")

    scene.join("b", "b-1", protocols=reads("u"))

    metadata = {each.member_id: each.metadata for each in leader.joined.members}
    assert metadata == {"a-1": reads("t")[0].metadata, "b-1": reads("u")[0].metadata}


def test_a_repeated_join_while_completing_is_told_the_generation_again() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: CompletingRebalance, matches."""
    scene = completing_pair()

    leader, follower = scene.join("a", "a-1").joined, scene.join("b", "b-1").joined

    assert (leader.generation, follower.generation) == (1, 1)
    assert [each.member_id for each in leader.members] == ["a-1", "b-1"]
    assert follower.members == ()
    assert scene.state() == "CompletingRebalance"


def test_a_changed_join_while_completing_begins_anew() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: CompletingRebalance, changed."""
    scene = completing_pair()

    join = scene.join("b", "b-1", protocols=reads("t", "u"))

    assert join.is_parked
    assert scene.state() == "PreparingRebalance"


def test_the_leader_of_a_stable_group_rebalances_it_by_joining() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: Stable, group.isLeader."""
    scene = stable_pair()

    assert scene.join("a", "a-1").is_parked
    assert scene.state() == "PreparingRebalance"


def test_a_follower_with_a_change_rebalances_a_stable_group() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: Stable, not member.matches."""
    scene = stable_pair()

    assert scene.join("b", "b-1", protocols=reads("t", "u")).is_parked
    assert scene.state() == "PreparingRebalance"


def test_a_follower_without_a_change_is_told_the_present_generation() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: Stable, a follower that matches."""
    scene = stable_pair()

    joined = scene.join("b", "b-1").joined

    assert (joined.generation, joined.leader, joined.members) == (1, "a-1", ())
    assert (joined.protocol_type, joined.protocol) == ("consumer", "range")
    assert scene.state() == "Stable"


def test_a_former_member_of_an_empty_group_begins_anew() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: Empty."""
    scene = stable_pair()
    scene.leave("a-1", "b-1")

    assert scene.join("a", "a-1").error is ErrorCode.UNKNOWN_MEMBER_ID


# addMemberAndRebalance


def test_a_new_member_may_wait_five_minutes_in_its_first_join() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: NewMemberJoinTimeoutMs."""
    scene = Scene()
    scene.settle(scene.admit("a", session_ms=20 * MINUTE, rebalance_ms=10 * MINUTE))
    join = scene.admit("b")

    scene.advance(5 * MINUTE - 1)
    assert join.is_parked
    scene.advance(1)

    refused = join.told(Refused)
    assert (refused.error, refused.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "")


def test_newcomers_extend_the_first_rebalance_while_they_keep_coming() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: group.newMemberAdded."""
    scene = Scene()
    first = scene.admit("a")
    scene.advance(INITIAL_DELAY_MS - 1)
    second = scene.admit("b")

    scene.advance(1)
    assert first.is_parked
    scene.advance(INITIAL_DELAY_MS)

    assert (first.joined.generation, second.joined.generation) == (1, 1)


def test_newcomers_cannot_extend_it_past_the_rebalance_timeout() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: max.poll.interval.ms bounds a rebalance."""
    scene = Scene()
    join = scene.admit("a", rebalance_ms=7_000)
    for client in "bcdefg":
        scene.advance(1_000)
        scene.admit(client, rebalance_ms=7_000)
        assert join.is_parked

    scene.advance(1_000)

    assert join.joined.generation == 1


@pytest.mark.parametrize("make", [Scene, completing_pair, stable_pair])
def test_a_rebalance_can_begin_in_three_states(make: Callable[[], Scene]) -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: maybePrepareRebalance, canRebalance."""
    scene = make()

    scene.admit("z")

    assert scene.state() == "PreparingRebalance"


# Timeouts


def test_a_member_not_heard_of_for_its_session_is_dead_to_the_group() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: session.timeout.ms."""
    scene = stable_pair()
    scene.advance(SESSION_MS - 1)
    scene.heartbeat("a-1", 1)

    scene.advance(1)

    assert scene.state() == "PreparingRebalance"
    assert [each.member_id for each in scene.describe().members] == ["a-1"]


def test_the_slowest_member_sets_how_long_a_rebalance_may_take() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: max.poll.interval.ms."""
    scene = Scene()
    scene.settle(
        scene.admit("a", rebalance_ms=20_000, session_ms=MINUTE),
        scene.admit("b", rebalance_ms=REBALANCE_MS, session_ms=2 * MINUTE),
    )
    scene.sync("a-1", 1)
    scene.sync("b-1", 1)
    rejoin = scene.join("a", "a-1")

    scene.advance(REBALANCE_MS - 1)
    assert rejoin.is_parked
    scene.advance(1)

    assert [each.member_id for each in rejoin.joined.members] == ["a-1"]


def test_limits_are_kafkas_unless_told_otherwise() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: the settings it names."""
    limits = Limits()

    assert limits.group_min_session_timeout_ms == Millis(6_000)
    assert limits.group_max_session_timeout_ms == Millis(30 * MINUTE)
    assert limits.group_new_member_join_timeout_ms == Millis(5 * MINUTE)
    assert limits.group_max_size == 2**31 - 1
