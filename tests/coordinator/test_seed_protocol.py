"""003_8ac1d63db61777d2, Kafka Rebalance协议详解: three consumers and six partitions, end to end."""

from dataclasses import dataclass

from kohort.coordinator.outcome import TimerKey, TimerKind
from kohort.coordinator.replies import HeartbeatHeard
from kohort.types import ErrorCode, Partition
from kohort.wire.embedded import (
    Assignment,
    TopicPartitions,
    decode_assignment,
    encode_assignment,
)
from tests.coordinator.scene import GROUP, REBALANCE_MS, SESSION_MS, TOPIC, Asked, Scene

PLAN = {"a-1": (0, 1), "b-1": (2, 3), "c-1": (4, 5)}
"""Consumer1 -> Partition[0,1], Consumer2 -> Partition[2,3], Consumer3 -> Partition[4,5]"""

HEARTBEAT_INTERVAL_MS = 3_000


def share(*partitions: int) -> bytes:
    numbers = tuple(Partition(number) for number in partitions)
    return encode_assignment(
        Assignment(assigned_partitions=(TopicPartitions(topic=TOPIC, partitions=numbers),))
    )


def partitions_of(sync: Asked) -> tuple[int, ...]:
    (only,) = decode_assignment(sync.assignment).assigned_partitions
    return only.partitions


def spread(members: list[str]) -> dict[str, bytes]:
    """What a leader does: six partitions, in equal runs."""
    size = 6 // len(members)
    return {
        member: share(*range(number * size, (number + 1) * size))
        for number, member in enumerate(members)
    }


def joined_trio() -> tuple[Scene, list[Asked]]:
    scene = Scene()
    joins = [scene.admit(client) for client in "abc"]
    scene.settle(*joins)
    return scene, joins


# 1. 核心角色


def test_one_coordinator_keeps_groups_apart() -> None:
    """003_8ac1d63db61777d2, Kafka Rebalance协议详解: 1. 核心角色."""
    scene = Scene()
    scene.form("a", group="one")
    scene.form("b", group="two")

    scene.leave("a-1", group="one")

    assert (scene.state("one"), scene.state("two")) == ("Empty", "Stable")
    assert scene.heartbeat("b-1", 1, group="one").error is ErrorCode.UNKNOWN_MEMBER_ID


# 2. Join Group阶段


def test_everyone_asks_to_join_and_waits() -> None:
    """003_8ac1d63db61777d2, Kafka Rebalance协议详解: 2. Join Group阶段, 步骤1."""
    scene = Scene()

    joins = [scene.admit(client) for client in "abc"]

    assert all(join.is_parked for join in joins)
    assert scene.state() == "PreparingRebalance"


def test_the_coordinator_picks_a_leader_and_answers_all() -> None:
    """003_8ac1d63db61777d2, Kafka Rebalance协议详解: 2. Join Group阶段, 步骤2."""
    _, joins = joined_trio()

    assert [join.joined.leader for join in joins] == ["a-1", "a-1", "a-1"]
    assert [len(join.joined.members) for join in joins] == [3, 0, 0]
    assert {join.joined.generation for join in joins} == {1}


# 3. Sync Group阶段


def test_the_leaders_plan_reaches_every_consumer() -> None:
    """003_8ac1d63db61777d2, Kafka Rebalance协议详解: 3. Sync Group阶段, 步骤1-3."""
    scene, joins = joined_trio()
    members = [str(each.member_id) for each in joins[0].joined.members]

    followers = [scene.sync(member, 1) for member in ("b-1", "c-1")]
    leader = scene.sync("a-1", 1, spread(members))

    got = [partitions_of(sync) for sync in (leader, *followers)]
    assert dict(zip(PLAN, got, strict=True)) == PLAN
    assert scene.state() == "Stable"


# 4. Heartbeat阶段


def test_all_consumers_send_heartbeats_and_are_heard() -> None:
    """003_8ac1d63db61777d2, Kafka Rebalance协议详解: 4. Heartbeat阶段."""
    scene = Scene()
    scene.form("a", "b", "c")

    for _ in range(20):
        scene.advance(HEARTBEAT_INTERVAL_MS)
        for member in PLAN:
            assert isinstance(scene.heartbeat(member, 1).reply, HeartbeatHeard)


def test_every_heartbeat_starts_the_session_anew() -> None:
    """003_8ac1d63db61777d2, Kafka Rebalance协议详解: 4. Heartbeat阶段, heartbeat.interval.ms."""
    scene = Scene()
    scene.form("a", "b", "c")
    scene.advance(HEARTBEAT_INTERVAL_MS)

    scene.heartbeat("a-1", 1)

    assert scene.session_deadline("a-1") == scene.driver.now + SESSION_MS
    assert scene.session_deadline("b-1") != scene.session_deadline("a-1")


def test_a_consumer_silent_for_its_session_is_given_up() -> None:
    """003_8ac1d63db61777d2, Kafka Rebalance协议详解: 4. Heartbeat阶段, session.timeout.ms."""
    scene = Scene()
    scene.form("a", "b", "c")

    for _ in range(4):
        scene.advance(HEARTBEAT_INTERVAL_MS)
        scene.heartbeat("a-1", 1)
        scene.heartbeat("b-1", 1)

    assert [each.member_id for each in scene.describe().members] == ["a-1", "b-1"]


def test_a_consumer_too_slow_to_poll_is_not_waited_for_for_ever() -> None:
    """003_8ac1d63db61777d2, Kafka Rebalance协议详解: 4. Heartbeat阶段, max.poll.interval.ms."""
    scene = Scene()
    scene.form("a", "b", "c")
    rejoins = [scene.join("a", "a-1"), scene.join("b", "b-1")]
    assert scene.driver.timers[TimerKey(TimerKind.JOIN, GROUP)] == scene.driver.now + REBALANCE_MS

    for _ in range(REBALANCE_MS // HEARTBEAT_INTERVAL_MS):
        assert all(join.is_parked for join in rejoins)
        assert scene.heartbeat("c-1", 1).error is ErrorCode.REBALANCE_IN_PROGRESS
        scene.advance(HEARTBEAT_INTERVAL_MS)

    assert [each.member_id for each in rejoins[0].joined.members] == ["a-1", "b-1"]
    assert scene.heartbeat("c-1", 1).error is ErrorCode.UNKNOWN_MEMBER_ID


# 5. 完整流程示例


@dataclass
class Consumer:
    """The example's consumer: it commits what it has read when partitions are taken from it."""

    scene: Scene
    client: str
    join: Asked
    read: dict[int, int]
    """How far it has read each partition that it has."""

    @property
    def member(self) -> str:
        return self.join.joined.member_id

    @property
    def generation(self) -> int:
        return self.join.joined.generation

    def on_partitions_revoked(self) -> None:
        assert self.scene.commit(self.read, self.member, self.generation).error is ErrorCode.NONE
        self.read = {}

    def rejoin(self) -> None:
        self.join = self.scene.join(self.client, self.member)

    def on_partitions_assigned(self, sync: Asked) -> None:
        mine = partitions_of(sync)
        self.read = dict(zip(mine, self.scene.committed(*mine), strict=True))


def test_partitions_change_hands_where_their_last_owner_stopped() -> None:
    """003_8ac1d63db61777d2, Kafka Rebalance协议详解: 5. 完整流程示例."""
    scene = Scene()
    consumers = [Consumer(scene, client, scene.admit(client), {}) for client in "ab"]
    scene.settle(*(each.join for each in consumers))
    plan = spread(["a-1", "b-1"])
    for each in consumers:
        each.on_partitions_assigned(scene.sync(each.member, 1, plan))
        each.read = {number: 100 + number for number in each.read}

    third = Consumer(scene, "c", scene.admit("c"), {})
    for each in consumers:
        assert scene.heartbeat(each.member, 1).error is ErrorCode.REBALANCE_IN_PROGRESS
        each.on_partitions_revoked()
        each.rejoin()
    consumers.append(third)
    plan = spread([each.member for each in consumers])
    for each in consumers:
        each.on_partitions_assigned(scene.sync(each.member, 2, plan))

    assert {each.member: each.read for each in consumers} == {
        "a-1": {0: 100, 1: 101},
        "b-1": {2: 102, 3: 103},
        "c-1": {4: 104, 5: 105},
    }


def test_what_was_read_but_not_committed_is_read_again() -> None:
    """003_8ac1d63db61777d2, Kafka Rebalance协议详解: 5. 完整流程示例, commitSync."""
    scene = Scene()
    scene.form("a", "b")
    scene.commit({0: 10, 1: 20}, "b-1", 1)
    scene.join("a", "a-1")
    scene.join("b", "b-1")

    late = scene.commit({0: 15, 1: 25}, "b-1", 1)

    assert late.error is ErrorCode.ILLEGAL_GENERATION
    assert scene.committed(0, 1) == [10, 20]
