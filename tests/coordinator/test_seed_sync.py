"""000_9f907e76e4e22da0 and 002_581633bd2c5ee13f: syncing, and how everyone learns its share."""

from collections.abc import Callable

import pytest

from kohort.coordinator.commands import Shutdown, SyncGroup, Ticket
from kohort.coordinator.machine import Coordinator
from kohort.coordinator.recordcodec import decode_record, encode_record
from kohort.coordinator.records import GenerationFormed
from kohort.coordinator.replies import Refused, Synced
from kohort.coordinator.states import ANSWERS, GroupState, Question
from kohort.types import ErrorCode, Generation, MemberId, Millis, Partition
from kohort.wire.embedded import (
    Assignment,
    TopicPartitions,
    decode_assignment,
    encode_assignment,
)
from tests.coordinator.scene import (
    GROUP,
    SESSION_MS,
    TOPIC,
    Scene,
    completing_pair,
    reads,
    share_of,
    stable_pair,
    static_one,
)

SHARES = {"a-1": share_of("a-1"), "b-1": share_of("b-1")}


def preparing_pair() -> Scene:
    scene = stable_pair()
    scene.join("a", "a-1")
    return scene


# 000: handleSyncGroup


def test_a_sync_while_loading_sends_the_member_back_to_join() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: COORDINATOR_LOAD_IN_PROGRESS in a sync."""
    sync = SyncGroup(
        ticket=Ticket(1), group_id=GROUP, member_id=MemberId("a-1"), generation=Generation(1)
    )

    machine = Coordinator()
    machine.start()
    outcome = machine.decide(sync, Millis(0))

    assert outcome.replies == [Refused(ticket=Ticket(1), error=ErrorCode.REBALANCE_IN_PROGRESS)]


def test_a_sync_after_the_coordinator_moved_is_told_so() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: any other error of validateGroupStatus."""
    scene = stable_pair()
    scene.driver.decide(Shutdown())

    assert scene.sync("a-1", 1).error is ErrorCode.NOT_COORDINATOR


def test_a_sync_in_an_unknown_group_is_of_an_unknown_member() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: getGroup finds None."""
    assert Scene().sync("a-1", 1).error is ErrorCode.UNKNOWN_MEMBER_ID


# 000: doSyncGroup


def test_a_dead_group_sends_syncs_to_look_for_a_coordinator() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: group.is(Dead) in doSyncGroup."""
    assert ANSWERS[Question.SYNC][GroupState.DEAD] is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_sync_of_a_fenced_twin_is_refused() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: isStaticMemberFenced in doSyncGroup."""
    scene = static_one()
    scene.join("a", instance="i")

    assert scene.sync("a-1", 1, instance="i").error is ErrorCode.FENCED_INSTANCE_ID


def test_a_sync_of_a_stranger_is_refused() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: not group.has(memberId) in doSyncGroup."""
    assert completing_pair().sync("z-1", 1).error is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("generation", [0, 2])
def test_a_sync_of_another_generation_is_refused(generation: int) -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: generationId != group.generationId."""
    assert completing_pair().sync("a-1", generation).error is ErrorCode.ILLEGAL_GENERATION


@pytest.mark.parametrize(
    ("type_", "protocol"), [("connect", "range"), ("consumer", "sticky"), (None, "sticky")]
)
def test_a_sync_under_another_protocol_is_refused(type_: str | None, protocol: str) -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: protocolType and protocolName in a sync."""
    refused = completing_pair().sync("a-1", 1, type_=type_, protocol=protocol)

    assert refused.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_sync_in_an_empty_group_is_of_an_unknown_member() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: doSyncGroup in Empty."""
    scene = stable_pair()
    scene.leave("a-1", "b-1")

    assert scene.sync("a-1", 2).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_sync_while_preparing_sends_the_member_back_to_join() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: doSyncGroup in PreparingRebalance."""
    assert preparing_pair().sync("b-1", 1).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_sync_while_completing_waits_for_the_leader() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: awaitingSyncCallback."""
    scene = completing_pair()

    follower = scene.sync("b-1", 1)
    assert follower.is_parked
    leader = scene.sync("a-1", 1, SHARES)

    assert (leader.assignment, follower.assignment) == (share_of("a-1"), share_of("b-1"))
    assert scene.state() == "Stable"


def test_an_assignment_that_cannot_be_stored_is_refused_to_all_and_begins_anew() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: resetAndPropagateAssignmentError."""
    scene = completing_pair()
    follower = scene.sync("b-1", 1)
    scene.driver.append_error = ErrorCode.NOT_ENOUGH_REPLICAS

    leader = scene.sync("a-1", 1, SHARES)

    assert leader.error is follower.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert scene.state() == "PreparingRebalance"
    assert scene.heartbeat("b-1", 1).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_sync_in_a_stable_group_is_answered_at_once() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: doSyncGroup in Stable."""
    synced = stable_pair().sync("b-1", 1, type_="consumer", protocol="range").told(Synced)

    assert synced.assignment == share_of("b-1")
    assert (synced.protocol_type, synced.protocol) == ("consumer", "range")


def test_a_sync_in_a_stable_group_leaves_the_session_to_heartbeats() -> None:
    """000_9f907e76e4e22da0, 消费者组的 Rebalance 流程: 设定成员下次心跳时间.

    The coordinator the document reads began the session anew here; since Kafka 4 it does not.
    """
    scene = stable_pair()
    deadline = scene.session_deadline("b-1")
    scene.advance(1_000)

    scene.sync("b-1", 1)

    assert scene.session_deadline("b-1") == deadline


# 002: 发送请求


def test_the_leaders_sync_carries_the_share_of_every_member() -> None:
    """002_581633bd2c5ee13f, kafka-rebalance之SyncGroup: 发送请求, groupAssignment."""
    scene = completing_pair()
    partitions = (Partition(0), Partition(1))
    share = Assignment(assigned_partitions=(TopicPartitions(topic=TOPIC, partitions=partitions),))
    follower = scene.sync("b-1", 1)

    scene.sync("a-1", 1, {"a-1": b"", "b-1": encode_assignment(share)})

    assert decode_assignment(follower.assignment) == share


# 002: handleSyncGroup, doSyncGroup


def test_only_the_leaders_assignment_counts() -> None:
    """002_581633bd2c5ee13f, kafka-rebalance之SyncGroup: 只处理leader consumer."""
    scene = completing_pair()

    follower = scene.sync("b-1", 1, {"a-1": b"stolen", "b-1": b"stolen"})
    leader = scene.sync("a-1", 1, SHARES)

    assert follower.outcome.records == []
    assert (leader.assignment, follower.assignment) == (share_of("a-1"), share_of("b-1"))


def test_members_the_leader_forgot_get_an_empty_share() -> None:
    """002_581633bd2c5ee13f, kafka-rebalance之SyncGroup: fill any missing members."""
    scene = completing_pair()

    leader = scene.sync("a-1", 1, {"a-1": share_of("a-1")})

    (formed,) = leader.outcome.records
    assert isinstance(formed, GenerationFormed)
    assert [member.assignment for member in formed.members] == [share_of("a-1"), b""]
    assert scene.sync("b-1", 1).assignment == b""


def test_shares_for_strangers_are_ignored() -> None:
    """002_581633bd2c5ee13f, kafka-rebalance之SyncGroup: assignment(member.memberId)."""
    scene = completing_pair()

    leader = scene.sync("a-1", 1, SHARES | {"z-1": b"nobody's"})

    (formed,) = leader.outcome.records
    assert isinstance(formed, GenerationFormed)
    assert [member.member_id for member in formed.members] == ["a-1", "b-1"]


def test_the_assignment_is_stored_before_anyone_hears_of_it() -> None:
    """002_581633bd2c5ee13f, kafka-rebalance之SyncGroup: 持久化保存到__consumer_offset."""
    scene = completing_pair()
    follower = scene.sync("b-1", 1)

    leader = scene.sync("a-1", 1, SHARES)

    (record,) = leader.outcome.records
    assert isinstance(record, GenerationFormed)
    answered = {reply.ticket for reply in leader.outcome.replies}
    assert answered == {leader.ticket, follower.ticket}
    stored = encode_record(record)
    assert decode_record(stored.key, stored.value) == record


def test_a_group_that_moved_on_does_not_take_the_leaders_assignment() -> None:
    """002_581633bd2c5ee13f, kafka-rebalance之SyncGroup: another member may have joined."""
    scene = completing_pair()
    follower = scene.sync("b-1", 1)
    scene.admit("c")

    leader = scene.sync("a-1", 1, SHARES)

    assert follower.error is leader.error is ErrorCode.REBALANCE_IN_PROGRESS
    assert leader.outcome.records == []


# 002: setAndPropagateAssignment, 响应客户端


def test_the_share_of_every_member_is_remembered() -> None:
    """002_581633bd2c5ee13f, kafka-rebalance之SyncGroup: setAndPropagateAssignment."""
    scene = completing_pair()

    scene.sync("a-1", 1, SHARES)

    assert {each.member_id: each.assignment for each in scene.describe().members} == SHARES


def test_only_those_who_wait_are_answered() -> None:
    """002_581633bd2c5ee13f, kafka-rebalance之SyncGroup: awaitingSyncCallback != null."""
    scene = completing_pair()

    leader = scene.sync("a-1", 1, SHARES)

    assert [reply.ticket for reply in leader.outcome.replies] == [leader.ticket]


def test_who_is_answered_must_be_heard_of_from_then_on() -> None:
    """002_581633bd2c5ee13f, kafka-rebalance之SyncGroup: 开始执行定时任务监控member的心跳."""
    scene = completing_pair()
    scene.sync("b-1", 1)
    scene.advance(5_000)
    scene.heartbeat("a-1", 1)
    scene.sync("a-1", 1, SHARES)

    assert scene.session_deadline("b-1") == scene.driver.now + SESSION_MS
    scene.advance(SESSION_MS - 1)
    scene.heartbeat("a-1", 1)
    scene.advance(1)

    assert [each.member_id for each in scene.describe().members] == ["a-1"]


def test_a_member_parked_in_a_sync_need_not_be_heard_of() -> None:
    """002_581633bd2c5ee13f, kafka-rebalance之SyncGroup: 暂存回调, 在延迟任务完成时触发."""
    scene = completing_pair()
    follower = scene.sync("b-1", 1)
    for _ in range(3):
        scene.advance(SESSION_MS - 1)
        scene.heartbeat("a-1", 1)

    scene.sync("a-1", 1, SHARES)

    assert follower.assignment == share_of("b-1")


@pytest.mark.parametrize("make", [preparing_pair, completing_pair, stable_pair])
def test_every_generation_asks_the_leader_again(make: Callable[[], Scene]) -> None:
    """002_581633bd2c5ee13f, kafka-rebalance之SyncGroup: 总结."""
    scene = make()
    generation = scene.join("b", "b-1", protocols=reads("t", "u"))
    leader = scene.join("a", "a-1")

    follower = scene.sync("b-1", generation.joined.generation)
    assert follower.is_parked
    scene.sync("a-1", leader.joined.generation, {"b-1": b"new"})

    assert follower.assignment == b"new"
