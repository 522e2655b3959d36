"""Consumer groups: assignment, joins, leaves, crashes and listeners."""

import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence

import pytest
from confluent_kafka import Consumer as Librdkafka

from kohort.assignors import BUILT_IN, RebalanceProtocol, Subscriber
from kohort.client.consumer import Consumer
from kohort.client.errors import FencedInstanceIdError, GroupRejectedError, InvalidAssignmentError
from kohort.client.rebalances import ConsumerRebalanceListener, ConsumerRebalanceResult
from kohort.types import MemberId, Topic, TopicPartition
from tests.client.consumer_crowd import RecordingListener, crowd_of
from tests.client.node_cluster import Cluster, at, offsets, poll_until, read
from tests.wait import wait_until


@pytest.mark.parametrize("assignor", BUILT_IN)
def test_members_share_partitions_as_they_join_and_leave(cluster: Cluster, assignor: str) -> None:
    with crowd_of(cluster, 4, partition_assignment_strategy=assignor) as crowd:
        first = crowd.join()
        crowd.settle()
        assert first.assignment() == crowd.partitions

        crowd.join()
        crowd.join()
        crowd.settle()
        crowd.produce(5)
        assert crowd.read(20) == [(p, offset) for p in range(4) for offset in range(5)]

        crowd.leave(first)
        crowd.settle()
        assert len(crowd.members) == 2


def test_every_record_is_read_once_while_members_join_and_leave(cluster: Cluster) -> None:
    with crowd_of(cluster, 6, auto_commit_interval_ms=3_600_000, max_poll_records=3) as crowd:
        crowd.join()
        crowd.produce(30)
        crowd.read(20)
        crowd.join()
        crowd.read(60)
        crowd.settle()
        crowd.leave(crowd.members[0])

        assert crowd.read(180) == [(p, offset) for p in range(6) for offset in range(30)]


def test_an_eager_listener_gets_all_partitions_each_time(cluster: Cluster) -> None:
    with crowd_of(cluster, 2, partition_assignment_strategy="range") as crowd:
        listener, other = RecordingListener(), RecordingListener()
        crowd.join(listener)
        crowd.settle()
        second = crowd.join(other)
        crowd.settle()
        crowd.leave(second)
        crowd.settle()

    assert listener.calls == [
        ("assigned", (0, 1)),
        ("revoked", (0, 1)),
        ("assigned", listener.calls[2][1]),
        ("revoked", listener.calls[2][1]),
        ("assigned", (0, 1)),
        ("revoked", (0, 1)),
    ]
    assert other.calls == [("assigned", other.calls[0][1]), ("revoked", other.calls[0][1])]
    assert len(other.calls[0][1]) == 1


def test_a_cooperative_listener_gets_only_moved_partitions(cluster: Cluster) -> None:
    with crowd_of(cluster, 2, partition_assignment_strategy="cooperative-sticky") as crowd:
        listener, other = RecordingListener(), RecordingListener()
        crowd.join(listener)
        crowd.settle()
        crowd.join(other)
        crowd.settle()
        crowd.until(lambda: len(listener.calls) >= 3)
        moved = listener.calls[1][1]

    assert listener.calls[:3] == [("assigned", (0, 1)), ("revoked", moved), ("assigned", ())]
    assert len(moved) == 1
    assert ("assigned", moved) in other.calls
    assert ("lost", ()) not in listener.calls


class CommittingListener(ConsumerRebalanceListener):
    """Commits on revocation and seeks on assignment."""

    def __init__(self) -> None:
        self.consumer: Consumer | None = None
        self.begins_at: int | None = None
        self.kept: list[int | None] = []

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        assert self.consumer is not None
        for partition in partitions:
            if self.begins_at is not None:
                self.consumer.seek(partition, self.begins_at)

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        assert self.consumer is not None
        self.consumer.commit()
        for partition in partitions:
            found = self.consumer.committed(partition)
            self.kept.append(None if found is None else found.offset)


def test_a_listener_may_commit_and_seek(cluster: Cluster) -> None:
    with crowd_of(cluster, 1, enable_auto_commit=False) as crowd:
        listener = CommittingListener()
        listener.begins_at = 3
        crowd.produce(5)
        listener.consumer = crowd.join(listener)
        assert crowd.read(2) == [(0, 3), (0, 4)]
        crowd.leave(listener.consumer)

    assert listener.kept == [5]


class FailingListener(ConsumerRebalanceListener):
    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        raise LookupError(f"cannot cope with {len(partitions)}")


def test_poll_raises_the_listeners_error_and_the_group_continues(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 1)

    with cluster.consumer() as consumer:
        consumer.subscribe([topic], listener=FailingListener())
        with pytest.raises(LookupError, match="cannot cope with 1"):
            read(consumer, 1)

        assert offsets(read(consumer, 1)) == [0]


def test_a_killed_member_is_replaced_after_its_session(cluster: Cluster) -> None:
    with crowd_of(cluster, 2) as crowd:
        survivor = crowd.join()
        crowd.settle()
        words = (cluster.bootstrap_servers, crowd.topic, crowd.group)
        doomed = subprocess.Popen([sys.executable, "-m", "tests.client.killable_consumer", *words])
        try:
            crowd.until(lambda: len(survivor.assignment()) == 1, "a share")
        finally:
            doomed.kill()
            doomed.wait()

        crowd.settle()
        assert survivor.assignment() == crowd.partitions


def test_an_abandoned_member_is_replaced_after_its_session(cluster: Cluster) -> None:
    with crowd_of(cluster, 2) as crowd:
        doomed, survivor = crowd.join(), crowd.join()
        crowd.settle()
        crowd.members.remove(doomed)
        doomed.abandon()

        crowd.settle()
        assert survivor.assignment() == crowd.partitions


def test_a_busy_application_keeps_its_partitions(cluster: Cluster) -> None:
    options = {"partition_assignment_strategy": "cooperative-sticky", "session_timeout_ms": 600}
    with crowd_of(cluster, 6, **options) as crowd:
        listener = RecordingListener()
        busy, dead, third = crowd.join(listener), crowd.join(), crowd.join()
        crowd.settle()
        share = busy.assignment()
        crowd.forget(busy)
        crowd.members.remove(dead)
        dead.abandon()
        known = len(third.rebalances())
        crowd.until(lambda: len(third.rebalances()) > known, "a new generation")

        crowd.members.append(busy)
        crowd.settle()
        assert busy.assignment() >= share
        assert [calls for calls in listener.calls if calls[0] == "lost"] == []


def test_a_member_leaves_after_max_poll_interval_and_rejoins(cluster: Cluster) -> None:
    with crowd_of(cluster, 2) as crowd:
        listener = RecordingListener()
        stuck = crowd.join(listener, max_poll_interval_ms=700)
        crowd.settle()
        crowd.forget(stuck)
        other = crowd.join()
        crowd.until(lambda: other.assignment() == crowd.partitions, "all of it")
        crowd.members.append(stuck)
        crowd.settle()

    assert listener.calls[:2] == [("assigned", (0, 1)), ("lost", (0, 1))]
    assert ConsumerRebalanceResult.LEFT not in [each.result for each in other.rebalances()[:-1]]


def test_a_long_poll_does_not_exceed_max_poll_interval(cluster: Cluster) -> None:
    topic = cluster.create_topic()

    with cluster.consumer(max_poll_interval_ms=400) as consumer:
        listener = RecordingListener()
        consumer.subscribe([topic], listener=listener)

        assert consumer.poll(timeout_ms=1500) == {}
        assert listener.calls == [("assigned", (0,))]


# Static members


def test_a_static_member_comes_back_without_a_rebalance(cluster: Cluster) -> None:
    with crowd_of(cluster, 2) as crowd:
        listener = RecordingListener()
        one = crowd.join(group_instance_id="one")
        crowd.join(listener, group_instance_id="other")
        crowd.settle()
        share, calls = one.assignment(), list(listener.calls)
        crowd.leave(one)

        again = crowd.join(group_instance_id="one")
        crowd.settle()
        assert again.assignment() == share
        assert listener.calls == calls


def test_a_static_member_is_fenced_by_a_second_process(cluster: Cluster) -> None:
    with crowd_of(cluster, 1) as crowd:
        first = crowd.join(group_instance_id="only")
        crowd.settle()
        crowd.forget(first)

        twin = crowd.join(group_instance_id="only")
        crowd.settle()
        with pytest.raises(FencedInstanceIdError, match="'only'"):
            wait_until(lambda: first.poll(50) and False, 20, "the first one fenced")
        assert twin.assignment() == crowd.partitions


# Other clients


def test_a_group_may_have_members_of_another_library(cluster: Cluster) -> None:
    with crowd_of(cluster, 4, partition_assignment_strategy="range") as crowd:
        ours = crowd.join()
        crowd.settle()
        theirs = Librdkafka(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "group.id": crowd.group,
                "partition.assignment.strategy": "range",
                "session.timeout.ms": 1500,
                "heartbeat.interval.ms": 100,
            }
        )
        theirs.subscribe([crowd.topic])

        def is_shared() -> bool:
            theirs.poll(0.01)
            crowd.poll()
            return len(theirs.assignment()) == len(ours.assignment()) == 2

        wait_until(is_shared, 30, "half each")
        theirs.close()
        crowd.settle()
        assert ours.assignment() == crowd.partitions


# Subscriptions


def test_a_pattern_subscription_finds_new_topics(cluster: Cluster) -> None:
    group = cluster.name_group()
    cluster.create_topic(1, f"{group}-first")

    with cluster.consumer(group_id=group, metadata_max_age_ms=100) as consumer:
        consumer.subscribe(pattern=f"{group}-")
        poll_until(consumer, lambda: len(consumer.assignment()) == 1, "the first")
        second = cluster.create_topic(2, f"{group}-second")
        cluster.create_topic(1, f"not-{group}")
        poll_until(consumer, lambda: len(consumer.assignment()) == 3, "the second")

        assert consumer.subscription() == {f"{group}-first", f"{group}-second"}
        cluster.produce(second, 2)
        assert offsets(read(consumer, 2)) == [0, 1]


def test_new_partitions_are_read_from_their_beginning(cluster: Cluster) -> None:
    topic = cluster.create_topic(1)

    with cluster.consumer(metadata_max_age_ms=100) as consumer:
        consumer.subscribe([topic])
        poll_until(consumer, consumer.assignment)
        cluster.add_partitions(topic, 3)

        poll_until(consumer, lambda: len(consumer.assignment()) == 3, "all three")


def test_a_missing_topic_is_read_once_it_exists(cluster: Cluster) -> None:
    group = cluster.name_group()

    with cluster.consumer(group_id=group) as consumer:
        consumer.subscribe([f"{group}-later"])
        assert consumer.poll(300) == {}
        topic = cluster.create_topic(1, f"{group}-later")
        cluster.produce(topic, 2)

        assert offsets(read(consumer, 2)) == [0, 1]


def test_a_subscription_can_be_changed(cluster: Cluster) -> None:
    one, other = cluster.create_topic(), cluster.create_topic()
    cluster.produce(one, 1)
    cluster.produce(other, 2)

    with cluster.consumer() as consumer:
        consumer.subscribe([one])
        read(consumer, 1)
        consumer.subscribe([other])
        assert {each.topic for each in read(consumer, 2)} == {other}

        assert consumer.assignment() == {at(other)}
        assert consumer.subscription() == {other}


def test_unsubscribe_leaves_the_group_and_subscribe_joins_again(cluster: Cluster) -> None:
    with crowd_of(cluster, 2) as crowd:
        listener = RecordingListener()
        fickle, steady = crowd.join(listener), crowd.join()
        crowd.settle()
        fickle.unsubscribe()
        assert fickle.assignment() == frozenset()
        assert listener.calls[-1][0] == "revoked"
        crowd.forget(fickle)
        crowd.settle()
        assert steady.assignment() == crowd.partitions

        fickle.subscribe([crowd.topic])
        crowd.members.append(fickle)
        crowd.settle()


def test_a_manual_assignment_can_be_replaced_by_a_subscription(cluster: Cluster) -> None:
    topic = cluster.create_topic()
    cluster.produce(topic, 2)

    with cluster.consumer(enable_auto_commit=False) as consumer:
        consumer.assign([at(topic)])
        read(consumer, 2)
        consumer.unsubscribe()
        consumer.subscribe([topic])

        assert offsets(read(consumer, 2)) == [0, 1]


# Rebalance history


def test_enforce_rebalance_and_the_rebalance_history(cluster: Cluster) -> None:
    with crowd_of(cluster, 3) as crowd:
        member = crowd.join()
        crowd.settle()
        member.enforce_rebalance("because we can")
        crowd.until(lambda: len(member.rebalances()) == 2, "another one")
        first, second = member.rebalances()
        crowd.leave(member)
        rebalances = member.rebalances()

    assert rebalances[:2] == [first, second]
    assert (first.generation, second.generation) == (1, 2)
    assert second.reason == "because we can"
    assert second.is_leader
    assert second.members == 1
    assert first.added == second.assigned == crowd.partitions
    assert first.started_at <= first.ended_at <= second.started_at


def test_the_leader_knows_the_member_count(cluster: Cluster) -> None:
    with crowd_of(cluster, 4) as crowd:
        members: list[Consumer] = [crowd.join() for _ in range(2)]
        crowd.settle()
        last = [member.rebalances()[-1] for member in members]

    assert sorted((each.is_leader, each.members) for each in last) == [(False, None), (True, 2)]
    assert {each.protocol for each in last} == {"range"}


def test_members_without_a_common_assignor_are_rejected(cluster: Cluster) -> None:
    with crowd_of(cluster, 1) as crowd:
        crowd.join(partition_assignment_strategy="range")
        crowd.settle()
        with cluster.consumer(
            group_id=crowd.group, partition_assignment_strategy="sticky"
        ) as stranger:
            stranger.subscribe([crowd.topic])
            with pytest.raises(GroupRejectedError, match="no assignor in common"):
                crowd.until(lambda: stranger.poll(50) and False)


class BrokenAssignor:
    """A custom assignor that raises."""

    name = "broken"
    protocols = frozenset((RebalanceProtocol.EAGER,))

    def user_data(self, *_: object) -> bytes | None:
        return None

    def assign(
        self, partitions: Mapping[Topic, int], subscribers: Sequence[Subscriber]
    ) -> dict[MemberId, list[TopicPartition]]:
        raise ZeroDivisionError(f"{len(partitions)} topics for {len(subscribers)} members")


def test_poll_raises_the_error_of_a_custom_assignor(cluster: Cluster) -> None:
    topic = cluster.create_topic()

    with cluster.consumer(partition_assignment_strategy=BrokenAssignor()) as consumer:
        consumer.subscribe([topic])
        with pytest.raises(InvalidAssignmentError, match="ZeroDivisionError"):
            poll_until(consumer, lambda: False)
