"""001_99667ab5cb6459d0, 重平衡时机回顾: when a group rebalances, and who is told what."""

from kohort.coordinator.commands import DeleteGroups
from kohort.coordinator.notes import RebalanceStarted, StateChanged, Trigger
from kohort.coordinator.outcome import TimerKey, TimerKind
from kohort.coordinator.replies import DeleteGroupsAnswered, HeartbeatHeard, LeaveAnswered
from kohort.coordinator.states import MEANING, GroupState
from kohort.types import ErrorCode
from tests.coordinator.scene import (
    GROUP,
    INITIAL_DELAY_MS,
    REBALANCE_MS,
    SESSION_MS,
    TOPIC,
    Scene,
    completing_pair,
    reads,
    share_of,
    stable_pair,
)

DAY_MS = 24 * 60 * 60_000


def triggers(scene: Scene) -> list[Trigger]:
    return [note.trigger for note in scene.driver.notes if isinstance(note, RebalanceStarted)]


def states(scene: Scene) -> list[GroupState]:
    return [note.after for note in scene.driver.notes if isinstance(note, StateChanged)]


# 1. 重平衡时机


def test_a_change_in_the_number_of_consumers_rebalances() -> None:
    """001_99667ab5cb6459d0, 重平衡时机回顾: 消费者实例数量发生变化."""
    scene = stable_pair()

    scene.admit("c")

    assert triggers(scene)[-1] is Trigger.MEMBER_JOINED
    assert scene.state() == "PreparingRebalance"


def test_a_change_in_the_subscribed_topics_rebalances() -> None:
    """001_99667ab5cb6459d0, 重平衡时机回顾: 订阅的主题数量发生变化."""
    scene = stable_pair()

    scene.join("b", "b-1", protocols=reads(TOPIC, "another"))

    assert triggers(scene)[-1] is Trigger.SUBSCRIPTION_CHANGED
    assert scene.state() == "PreparingRebalance"


def test_the_leader_that_saw_the_partitions_change_rebalances() -> None:
    """001_99667ab5cb6459d0, 重平衡时机回顾: 订阅的主题分区数发生了变化."""
    scene = stable_pair()

    scene.join("a", "a-1")

    assert triggers(scene)[-1] is Trigger.LEADER_REJOINED
    assert scene.state() == "PreparingRebalance"


# 2.1. 心跳线程


def test_a_heartbeat_tells_the_others_that_a_rebalance_has_begun() -> None:
    """001_99667ab5cb6459d0, 重平衡时机回顾: REBALANCE_IN_PROGRESS in the heartbeat's answer."""
    scene = stable_pair()
    assert scene.heartbeat("a-1", 1).error is ErrorCode.NONE

    scene.admit("c")

    for member in ("a-1", "b-1"):
        assert scene.heartbeat(member, 1).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_heartbeats_alone_keep_a_busy_member_alive() -> None:
    """001_99667ab5cb6459d0, 重平衡时机回顾: a heartbeat thread of its own."""
    scene = Scene()
    scene.form("a")

    for _ in range(100):
        scene.advance(3_000)
        assert isinstance(scene.heartbeat("a-1", 1).reply, HeartbeatHeard)

    assert scene.state() == "Stable"


def test_the_heartbeat_interval_is_how_soon_a_member_knows() -> None:
    """001_99667ab5cb6459d0, 重平衡时机回顾: heartbeat.interval.ms."""
    scene = stable_pair()
    newcomer = scene.admit("c")
    began_ms = scene.driver.now

    scene.advance(3_000)
    for client in ("a", "b"):
        assert scene.heartbeat(f"{client}-1", 1).error is ErrorCode.REBALANCE_IN_PROGRESS
        scene.join(client, f"{client}-1")

    assert newcomer.joined.generation == 2
    assert scene.driver.now - began_ms == 3_000


# 2.2. 消费者组状态机


def test_the_group_has_the_five_states() -> None:
    """001_99667ab5cb6459d0, 重平衡时机回顾: Kafka 为消费者组定义了 5 种状态."""
    assert set(MEANING) == set(GroupState)
    assert {str(state).lower() for state in GroupState} == {
        "empty",
        "dead",
        "preparingrebalance",
        "completingrebalance",
        "stable",
    }


def test_an_empty_group_has_no_members_but_may_have_offsets() -> None:
    """001_99667ab5cb6459d0, 重平衡时机回顾: empty."""
    scene = stable_pair()
    scene.commit({0: 42}, "a-1", 1)

    scene.leave("a-1", "b-1")

    described = scene.describe()
    assert (described.state, described.members) == ("Empty", ())
    assert scene.committed(0) == [42]


def test_a_dead_group_has_neither_members_nor_metadata() -> None:
    """001_99667ab5cb6459d0, 重平衡时机回顾: dead."""
    scene = Scene()
    scene.commit({0: 42})

    deleted = scene.ask(lambda ticket: DeleteGroups(ticket=ticket, group_ids=(GROUP,)))

    assert deleted.told(DeleteGroupsAnswered).results[0].error is ErrorCode.NONE
    described = scene.describe()
    assert (described.state, described.error) == ("Dead", ErrorCode.GROUP_ID_NOT_FOUND)
    assert scene.committed(0) == [-1]


def test_a_preparing_group_waits_for_its_members_to_join() -> None:
    """001_99667ab5cb6459d0, 重平衡时机回顾: PreparingRebalance."""
    scene = stable_pair()

    join = scene.join("a", "a-1")

    assert scene.state() == "PreparingRebalance"
    assert join.is_parked


def test_a_completing_group_waits_for_the_assignment() -> None:
    """001_99667ab5cb6459d0, 重平衡时机回顾: CompletingRebalance."""
    scene = completing_pair()

    sync = scene.sync("b-1", 1)

    assert scene.state() == "CompletingRebalance"
    assert sync.is_parked


def test_a_stable_group_lets_its_members_work() -> None:
    """001_99667ab5cb6459d0, 重平衡时机回顾: Stable."""
    scene = stable_pair()

    assert scene.heartbeat("b-1", 1).error is ErrorCode.NONE
    assert scene.commit({0: 1}, "b-1", 1).error is ErrorCode.NONE


def test_a_group_goes_from_empty_through_both_phases_to_stable() -> None:
    """001_99667ab5cb6459d0, 重平衡时机回顾: Empty, PreparingRebalance, Completing, Stable."""
    scene = Scene()

    scene.form("a")

    assert states(scene) == [
        GroupState.PREPARING_REBALANCE,
        GroupState.COMPLETING_REBALANCE,
        GroupState.STABLE,
    ]


def test_offsets_of_a_group_that_is_empty_for_seven_days_are_deleted() -> None:
    """001_99667ab5cb6459d0, 重平衡时机回顾: 超过 7 天."""
    scene = stable_pair()
    scene.commit({0: 42}, "a-1", 1)
    scene.leave("a-1", "b-1")

    scene.advance(7 * DAY_MS - 1)
    assert scene.committed(0) == [42]
    scene.advance(scene.driver.limits.offsets_retention_check_interval_ms)

    assert scene.committed(0) == [-1]
    assert scene.state() == "Dead"


def test_offsets_of_a_group_with_members_do_not_expire() -> None:
    """001_99667ab5cb6459d0, 重平衡时机回顾: 组要处于 Empty 状态."""
    scene = Scene()
    join = scene.admit("a", session_ms=30 * 60_000)
    scene.settle(join)
    scene.sync("a-1", 1)
    scene.commit({0: 42}, "a-1", 1)

    while scene.driver.now < 8 * DAY_MS:
        scene.advance(20 * 60_000)
        scene.heartbeat("a-1", 1)

    assert scene.committed(0) == [42]


# 2.3.1. 消费端请求


def test_the_first_to_join_leads_and_learns_who_is_there() -> None:
    """001_99667ab5cb6459d0, 重平衡时机回顾: 第一个发送 JoinGroup 请求的成员自动成为领导者."""
    scene = Scene()
    joins = [scene.admit(client) for client in "abc"]
    scene.settle(*joins)

    leader, *followers = (join.joined for join in joins)

    assert [each.member_id for each in leader.members] == ["a-1", "b-1", "c-1"]
    assert leader.members[1].metadata == reads(TOPIC)[0].metadata
    assert {each.leader for each in (leader, *followers)} == {"a-1"}
    assert [each.members for each in followers] == [(), ()]


def test_a_follower_may_ask_for_its_share_before_or_after_the_leader() -> None:
    """001_99667ab5cb6459d0, 重平衡时机回顾: 协调者可能返回已经分配好的方案信息."""
    scene = Scene()
    scene.settle(*(scene.admit(client) for client in "abc"))
    shares = {f"{client}-1": share_of(client) for client in "abc"}

    before = scene.sync("b-1", 1)
    assert before.is_parked
    scene.sync("a-1", 1, shares)
    after = scene.sync("c-1", 1)

    assert (before.assignment, after.assignment) == (share_of("b"), share_of("c"))


# 2.3.2. broker接收请求


def test_a_newcomer_makes_everyone_join_and_sync_again() -> None:
    """001_99667ab5cb6459d0, 重平衡时机回顾: 新成员入组."""
    scene = stable_pair()
    newcomer = scene.admit("c")
    assert scene.heartbeat("a-1", 1).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert scene.heartbeat("b-1", 1).error is ErrorCode.REBALANCE_IN_PROGRESS

    leader, follower = scene.join("a", "a-1"), scene.join("b", "b-1")
    waiting = [scene.sync(member, 2) for member in ("b-1", "c-1")]
    scene.sync("a-1", 2, {"b-1": b"less", "c-1": b"some"})

    assert {join.joined.generation for join in (leader, follower, newcomer)} == {2}
    assert [sync.assignment for sync in waiting] == [b"less", b"some"]
    assert scene.state() == "Stable"


def test_a_member_that_leaves_is_out_at_once() -> None:
    """001_99667ab5cb6459d0, 重平衡时机回顾: 组成员主动离组."""
    scene = stable_pair()

    left = scene.leave("b-1").told(LeaveAnswered)

    assert [each.error for each in left.members] == [ErrorCode.NONE]
    assert [each.member_id for each in scene.describe().members] == ["a-1"]
    assert triggers(scene)[-1] is Trigger.MEMBER_LEFT
    assert scene.heartbeat("a-1", 1).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert scene.join("a", "a-1").joined.generation == 2


def test_a_member_that_crashes_is_out_after_its_session() -> None:
    """001_99667ab5cb6459d0, 重平衡时机回顾: 组成员崩溃离组, session.timeout.ms."""
    scene = stable_pair()
    for _ in range(3):
        scene.advance(3_000)
        assert scene.heartbeat("a-1", 1).error is ErrorCode.NONE

    scene.advance(SESSION_MS - 9_000)

    assert triggers(scene)[-1] is Trigger.SESSION_EXPIRED
    assert scene.heartbeat("a-1", 1).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert scene.heartbeat("b-1", 1).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_members_may_commit_until_they_rejoin() -> None:
    """001_99667ab5cb6459d0, 重平衡时机回顾: 位移处理, 协调者会给予成员一段缓冲时间."""
    scene = stable_pair()
    scene.admit("c")

    accepted = scene.commit({0: 42}, "b-1", 1)

    assert accepted.error is ErrorCode.NONE
    assert scene.committed(0) == [42]


def test_the_time_for_commits_is_over_once_the_new_generation_is_there() -> None:
    """001_99667ab5cb6459d0, 重平衡时机回顾: 位移处理, 一小段."""
    scene = completing_pair()

    assert scene.commit({0: 42}, "b-1", 1).error is ErrorCode.REBALANCE_IN_PROGRESS
    assert scene.commit({0: 42}, "b-1", 0).error is ErrorCode.ILLEGAL_GENERATION
    assert scene.committed(0) == [-1]


def test_who_does_not_rejoin_in_time_is_out() -> None:
    """001_99667ab5cb6459d0, 重平衡时机回顾: 位移处理, the time to rejoin ends."""
    scene = stable_pair()
    newcomer = scene.admit("c")
    deadline = scene.driver.now + REBALANCE_MS
    assert scene.driver.timers[TimerKey(TimerKind.JOIN, GROUP)] == deadline
    scene.join("a", "a-1")

    while scene.driver.now < deadline:
        scene.advance(INITIAL_DELAY_MS)
        scene.heartbeat("b-1", 1)

    assert newcomer.joined.generation == 2
    assert [each.member_id for each in scene.describe().members] == ["a-1", "c-1"]
