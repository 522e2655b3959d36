"""Acceptance tests with three consumers and six partitions.

From "The Kafka rebalance protocol in detail".
"""

from dataclasses import dataclass

from kohort.coordinator.outcome import TimerKey, TimerKind
from kohort.coordinator.replies import HeartbeatAccepted
from kohort.types import ErrorCode, Partition
from kohort.wire.consumer_protocol import (
    Assignment,
    TopicPartitions,
    decode_assignment,
    encode_assignment,
)
from tests.coordinator.scenario import GROUP, REBALANCE_MS, SESSION_MS, TOPIC, Scenario, SentRequest

PLAN = {"a-1": (0, 1), "b-1": (2, 3), "c-1": (4, 5)}
"""Consumer1 -> Partition[0,1], Consumer2 -> Partition[2,3], Consumer3 -> Partition[4,5]"""

HEARTBEAT_INTERVAL_MS = 3_000


def share(*partitions: int) -> bytes:
    numbers = tuple(Partition(number) for number in partitions)
    return encode_assignment(
        Assignment(assigned_partitions=(TopicPartitions(topic=TOPIC, partitions=numbers),))
    )


def partitions_of(sync: SentRequest) -> tuple[int, ...]:
    (only,) = decode_assignment(sync.assignment).assigned_partitions
    return only.partitions


def spread(members: list[str]) -> dict[str, bytes]:
    """What a leader does: six partitions, in equal runs."""
    size = 6 // len(members)
    return {
        member: share(*range(number * size, (number + 1) * size))
        for number, member in enumerate(members)
    }


def joined_trio() -> tuple[Scenario, list[SentRequest]]:
    scenario = Scenario()
    joins = [scenario.admit(client) for client in "abc"]
    scenario.settle(*joins)
    return scenario, joins


# 1. Core roles


def test_groups_are_independent() -> None:
    """The Kafka rebalance protocol in detail: 1. Core roles."""
    scenario = Scenario()
    scenario.form("a", group="one")
    scenario.form("b", group="two")

    scenario.leave("a-1", group="one")

    assert (scenario.state("one"), scenario.state("two")) == ("Empty", "Stable")
    assert scenario.heartbeat("b-1", 1, group="one").error is ErrorCode.UNKNOWN_MEMBER_ID


# 2. Join Group phase


def test_joins_are_parked() -> None:
    """The Kafka rebalance protocol in detail: 2. Join Group phase, step 1."""
    scenario = Scenario()

    joins = [scenario.admit(client) for client in "abc"]

    assert all(join.is_parked for join in joins)
    assert scenario.state() == "PreparingRebalance"


def test_coordinator_elects_a_leader_and_answers_all_joins() -> None:
    """The Kafka rebalance protocol in detail: 2. Join Group phase, step 2."""
    _, joins = joined_trio()

    assert [join.joined.leader for join in joins] == ["a-1", "a-1", "a-1"]
    assert [len(join.joined.members) for join in joins] == [3, 0, 0]
    assert {join.joined.generation for join in joins} == {1}


# 3. Sync Group phase


def test_assignment_of_the_leader_reaches_every_consumer() -> None:
    """The Kafka rebalance protocol in detail: 3. Sync Group phase, steps 1-3."""
    scenario, joins = joined_trio()
    members = [str(each.member_id) for each in joins[0].joined.members]

    followers = [scenario.sync(member, 1) for member in ("b-1", "c-1")]
    leader = scenario.sync("a-1", 1, spread(members))

    got = [partitions_of(sync) for sync in (leader, *followers)]
    assert dict(zip(PLAN, got, strict=True)) == PLAN
    assert scenario.state() == "Stable"


# 4. Heartbeat phase


def test_heartbeats_of_all_consumers_are_accepted() -> None:
    """The Kafka rebalance protocol in detail: 4. Heartbeat phase."""
    scenario = Scenario()
    scenario.form("a", "b", "c")

    for _ in range(20):
        scenario.advance(HEARTBEAT_INTERVAL_MS)
        for member in PLAN:
            assert isinstance(scenario.heartbeat(member, 1).reply, HeartbeatAccepted)


def test_every_heartbeat_restarts_the_session() -> None:
    """The Kafka rebalance protocol in detail: 4. Heartbeat phase, heartbeat.interval.ms."""
    scenario = Scenario()
    scenario.form("a", "b", "c")
    scenario.advance(HEARTBEAT_INTERVAL_MS)

    scenario.heartbeat("a-1", 1)

    assert scenario.session_deadline("a-1") == scenario.driver.now + SESSION_MS
    assert scenario.session_deadline("b-1") != scenario.session_deadline("a-1")


def test_consumer_without_heartbeats_is_removed_after_its_session() -> None:
    """The Kafka rebalance protocol in detail: 4. Heartbeat phase, session.timeout.ms."""
    scenario = Scenario()
    scenario.form("a", "b", "c")

    for _ in range(4):
        scenario.advance(HEARTBEAT_INTERVAL_MS)
        scenario.heartbeat("a-1", 1)
        scenario.heartbeat("b-1", 1)

    assert [each.member_id for each in scenario.describe().members] == ["a-1", "b-1"]


def test_consumer_that_does_not_rejoin_is_removed_at_the_rebalance_timeout() -> None:
    """The Kafka rebalance protocol in detail: 4. Heartbeat phase, max.poll.interval.ms."""
    scenario = Scenario()
    scenario.form("a", "b", "c")
    rejoins = [scenario.join("a", "a-1"), scenario.join("b", "b-1")]
    assert (
        scenario.driver.timers[TimerKey(TimerKind.JOIN, GROUP)]
        == scenario.driver.now + REBALANCE_MS
    )

    for _ in range(REBALANCE_MS // HEARTBEAT_INTERVAL_MS):
        assert all(join.is_parked for join in rejoins)
        assert scenario.heartbeat("c-1", 1).error is ErrorCode.REBALANCE_IN_PROGRESS
        scenario.advance(HEARTBEAT_INTERVAL_MS)

    assert [each.member_id for each in rejoins[0].joined.members] == ["a-1", "b-1"]
    assert scenario.heartbeat("c-1", 1).error is ErrorCode.UNKNOWN_MEMBER_ID


# 5. Complete example


@dataclass
class Consumer:
    """The example's consumer: it commits what it has read when partitions are taken from it."""

    scenario: Scenario
    client: str
    join: SentRequest
    read: dict[int, int]
    """How far it has read each partition that it has."""

    @property
    def member(self) -> str:
        return self.join.joined.member_id

    @property
    def generation(self) -> int:
        return self.join.joined.generation

    def on_partitions_revoked(self) -> None:
        assert self.scenario.commit(self.read, self.member, self.generation).error is ErrorCode.NONE
        self.read = {}

    def rejoin(self) -> None:
        self.join = self.scenario.join(self.client, self.member)

    def on_partitions_assigned(self, sync: SentRequest) -> None:
        mine = partitions_of(sync)
        self.read = dict(zip(mine, self.scenario.committed(*mine), strict=True))


def test_new_owner_continues_at_the_committed_offset() -> None:
    """The Kafka rebalance protocol in detail: 5. Complete example."""
    scenario = Scenario()
    consumers = [Consumer(scenario, client, scenario.admit(client), {}) for client in "ab"]
    scenario.settle(*(each.join for each in consumers))
    plan = spread(["a-1", "b-1"])
    for each in consumers:
        each.on_partitions_assigned(scenario.sync(each.member, 1, plan))
        each.read = {number: 100 + number for number in each.read}

    third = Consumer(scenario, "c", scenario.admit("c"), {})
    for each in consumers:
        assert scenario.heartbeat(each.member, 1).error is ErrorCode.REBALANCE_IN_PROGRESS
        each.on_partitions_revoked()
        each.rejoin()
    consumers.append(third)
    plan = spread([each.member for each in consumers])
    for each in consumers:
        each.on_partitions_assigned(scenario.sync(each.member, 2, plan))

    assert {each.member: each.read for each in consumers} == {
        "a-1": {0: 100, 1: 101},
        "b-1": {2: 102, 3: 103},
        "c-1": {4: 104, 5: 105},
    }


def test_uncommitted_records_are_read_again() -> None:
    """The Kafka rebalance protocol in detail: 5. Complete example, commitSync."""
    scenario = Scenario()
    scenario.form("a", "b")
    scenario.commit({0: 10, 1: 20}, "b-1", 1)
    scenario.join("a", "a-1")
    scenario.join("b", "b-1")

    late = scenario.commit({0: 15, 1: 25}, "b-1", 1)

    assert late.error is ErrorCode.ILLEGAL_GENERATION
    assert scenario.committed(0, 1) == [10, 20]
